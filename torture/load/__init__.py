"""A long time, many clients, large stores, little memory."""
