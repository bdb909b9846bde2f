"""Builders of pages: each module has the function of its name, `front(contents)`."""
