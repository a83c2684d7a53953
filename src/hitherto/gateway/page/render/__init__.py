"""Parts of views as HTML."""
