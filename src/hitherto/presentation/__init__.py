"""What several doors show alike."""
