"""Run the command line as `python -m qualms`."""

from qualms.cli import main

main()
