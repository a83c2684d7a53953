"""opencode's sessions."""
