"""An ACP agent, for editors."""
