"""Making a context smaller: a summary takes the place of what was said, for the model only."""
