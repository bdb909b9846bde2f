"""Users' mistakes by what they are about: files, options, data, Python and models."""
