"""Edits: what agents changed in files, read from what their tools were asked to do and said they did. Pure."""
