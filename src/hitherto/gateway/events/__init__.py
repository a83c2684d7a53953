"""Subscriptions: what changed since somebody was last sent something."""
