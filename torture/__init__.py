"""Faults, load and attack on the whole program through its own doors: `python -m torture` writes the scorecard."""
