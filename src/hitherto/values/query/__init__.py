"""Queries as people type them: words, fields, and times. Pure."""
