"""Who may use the store: tokens, signing in, and who has a session open."""
