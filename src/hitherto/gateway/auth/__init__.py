"""Who calls: tokens and cookies."""
