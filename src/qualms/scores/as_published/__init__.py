"""Released code of the papers, quirks included."""
