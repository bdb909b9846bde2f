"""What `lidc` and `lidc_contours` share: the annotations of LIDC-IDRI."""
