"""Sessions that come and go: exports, imports, and what sync reads from other agents."""
