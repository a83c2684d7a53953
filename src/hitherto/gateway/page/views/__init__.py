"""The views of the page, one module each."""
