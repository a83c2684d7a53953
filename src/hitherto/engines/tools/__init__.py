"""The tools that act on this machine: files within the roots of a session, commands, and a plan."""
