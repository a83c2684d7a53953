"""The tables of the search file: a row of words for each entry and title, by the time it was said."""
