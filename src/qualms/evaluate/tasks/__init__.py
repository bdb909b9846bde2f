"""Judging one predictions file, by task; the folder is the registry.

`tasks/classification.py` defines `classification(predictions, val, options)`, which
returns a `Judgement`.
"""
