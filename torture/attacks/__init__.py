"""Whatever is sent by whoever may not."""
