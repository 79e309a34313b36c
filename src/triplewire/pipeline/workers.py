"""Workers: the Python processes in which Spark runs our transforms, and what is done once in each of them."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

from triplewire.config.settings import hide


def lighten() -> None:
    """Called first by whatever runs in a worker, before anything else of ours is done there."""
    hide("pandas")


def keep() -> None:
    """What lives now stays: Spark collects garbage after every task, and need not look at it each time.

    Called when something was made that lasts. In a small batch the collection used to take a quarter of the time.
    """
    gc.collect()
    gc.freeze()


def forget_others(kept: dict[Path, Any], generation: Path) -> None:
    """What belongs to another generation is not asked for any more."""
    for path in [each for each in kept if each.parent != generation]:
        del kept[path]
