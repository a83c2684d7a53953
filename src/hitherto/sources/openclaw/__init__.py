"""OpenClaw's sessions."""
