"""`python -m eigentime`."""

from eigentime.cli import main

main()
