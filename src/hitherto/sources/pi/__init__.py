"""Pi's sessions."""
