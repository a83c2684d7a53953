"""Going on with a session in an agent: its own, or another."""
