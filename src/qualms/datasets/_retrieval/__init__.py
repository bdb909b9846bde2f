"""Parts that the real datasets of URL (Kirchhof et al., 2023) share."""
