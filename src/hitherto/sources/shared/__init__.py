"""What the readers of several agents have in common."""
