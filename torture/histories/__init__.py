"""What many clients did at the same time, and whether it could have been done one after the other."""
