"""Importing the sessions of other agents, and following them."""
