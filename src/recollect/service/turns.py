"""Turns: a prompt is stored, an engine answers it, and every step is stored as it happens."""
