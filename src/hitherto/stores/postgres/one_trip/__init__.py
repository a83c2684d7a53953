"""Work that needs one statement, and so no transaction around it: the calls that come most often."""
