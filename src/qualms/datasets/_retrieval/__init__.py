"""What the real datasets of URL share (Kirchhof et al., 2023, arXiv:2307.03810)."""
