"""Values with rules of their own: keys, spans, words, cursors, days, … Pure, and known to every room."""
