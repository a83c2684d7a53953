"""What requests to models, sessions and turns have used, and what that costs. Pure."""
