"""Mending transcripts: what their agent would refuse or lose is found, and a new session without it is written."""
