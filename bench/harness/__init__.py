"""How contenders are measured side by side, and how the page is written."""
