"""Clients that note what was acknowledged to them."""
