"""What was said in a session: entries, forks, checkpoints, erasure."""
