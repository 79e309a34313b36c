"""Fences: what one process wrote before one, others see before what it writes after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba.core import types
from numba.extending import intrinsic

from triplewire.native.functions import compiled


def _fence(_typing: Any) -> Any:  # noqa: ANN401 - of numba's own kinds
    def made(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:  # noqa: ANN401
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), made


fence = cast(Callable[[], None], intrinsic(_fence))
"""In compiled code: neither compiler nor processor moves a reading or a writing across it."""


@compiled
def fenced() -> None:
    """The same for Python."""
    fence()
