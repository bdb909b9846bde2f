"""Builders of pages: each module has a function `build(contents)`."""
