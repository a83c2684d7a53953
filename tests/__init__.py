"""What Hitherto promises, each promise a sentence."""
