"""Finding sessions by what was said, and finding the way within one."""
