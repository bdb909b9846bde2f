"""Datasets and simulators, one file each; the folder is the registry."""
