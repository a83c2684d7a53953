"""Sessions of a chat gateway: their keys, and when they begin anew."""
