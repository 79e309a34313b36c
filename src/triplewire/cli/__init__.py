"""The command line."""

from triplewire.cli.app import main

__all__ = ["main"]
