"""Gemini CLI's sessions."""
