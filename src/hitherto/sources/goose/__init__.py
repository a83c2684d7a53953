"""goose's sessions."""
