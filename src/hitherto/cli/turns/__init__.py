"""Turns in the terminal."""
