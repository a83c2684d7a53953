"""Turns: a prompt is stored, an engine answers it, every step is stored as it happens."""
