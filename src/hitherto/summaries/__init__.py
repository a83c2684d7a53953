"""The built-in summariser: it needs no model."""
