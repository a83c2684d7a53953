"""Faults one after the other: each call, each statement and each answer on its way is the one that fails, once."""
