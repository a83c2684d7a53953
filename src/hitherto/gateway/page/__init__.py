"""The page: find, read and follow sessions in a browser. Rendered here; a few small scripts make it live."""
