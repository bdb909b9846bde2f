"""How one predictions file is judged, by task; the folder is the registry.

`tasks/classification.py` defines `classification(predictions, val, options)`, which
gives a `Judgement`.
"""
