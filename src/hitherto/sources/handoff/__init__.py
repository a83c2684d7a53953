"""Continuing a session in an agent: its own, or another."""
