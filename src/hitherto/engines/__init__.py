"""What runs turns. Nothing here is imported before a session is opened for prompting."""
