"""The short form of the scorecard."""
