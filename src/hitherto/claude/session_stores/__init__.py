"""Session stores of `claude-agent-sdk`: what one is, and the session functions over any of them instead of files."""
