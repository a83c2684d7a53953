"""Edits: what sessions changed in files, and which session wrote a line."""
