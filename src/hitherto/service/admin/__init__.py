"""Looking after a store: retention, maintenance, statistics."""
