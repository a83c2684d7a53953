"""Stores and files that are damaged, full, old or written by many."""
