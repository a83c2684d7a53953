"""Measures Hitherto beside the session stores people use today; run it with `python -m bench`."""
