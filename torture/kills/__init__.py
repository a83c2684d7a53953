"""Programs and servers that are killed."""
