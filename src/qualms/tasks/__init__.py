"""Tasks, one folder each; the folder is the registry.

The engines hold no task's name. They ask the shelf for what a task states in its files
(`qualms.shelf.task_part`), and `TRAITS` in `__init__.py` says in a few words what its
predictions are.
"""
