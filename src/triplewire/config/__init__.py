"""Settings and limits."""

from triplewire.config.settings import Settings

__all__ = ["Settings"]
