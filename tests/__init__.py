"""What Recollect promises, each promise a sentence."""
