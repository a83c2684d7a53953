"""Sessions as rows: making, finding, describing and deleting them, and the projects they belong to."""
