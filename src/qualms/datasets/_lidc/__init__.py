"""Annotations of LIDC-IDRI, shared by `lidc` and `lidc_contours`."""
