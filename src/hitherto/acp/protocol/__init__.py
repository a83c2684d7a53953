"""The Agent Client Protocol as values: pure."""
