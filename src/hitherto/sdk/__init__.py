"""Sessions to talk in: make one or resume one, prompt it, follow what happens. The names are public as `hitherto.…`."""
