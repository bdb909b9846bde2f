"""`python -m qualms` is the command line."""

from qualms.cli import main

main()
