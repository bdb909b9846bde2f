"""What the parts beside it share."""

BRIGHT = 100
