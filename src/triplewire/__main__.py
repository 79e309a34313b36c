"""`python -m triplewire` is the command line."""

from triplewire.cli import main

main()
