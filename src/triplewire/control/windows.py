"""Windows: queries that have some, before they are registered."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from triplewire.continuous.windows.plans import WindowPlan, plan_windows
from triplewire.model.errors import InvalidField, Unsupported
from triplewire.sparql.algebra import Dataset
from triplewire.sparql.rspql import Registration
from triplewire.sparql.syntax.lexer import SourceText, Token, unsupported
from triplewire.storage.registry.ontologies import ONTOLOGY
from triplewire.storage.registry.ports import Registry

_NAMED = re.compile(r"<.*/(streams|ontologies)/([A-Za-z0-9][A-Za-z0-9._~-]*)>")


def planned(text: str, registration: Registration) -> WindowPlan:
    """What a query with windows comes to. Raises Unsupported for what it cannot be, with its place."""
    try:
        return plan_windows(text)
    except Unsupported as error:
        if error.place is not None:
            raise
        raise unsupported(f"function {error.construct}", registration.marks, str(error)) from None


def check_background(text: str, dataset: Dataset, registry: Registry, published: Callable[[str], bool]) -> None:
    """Raises Unfit for a stream or an ontology beside the windows that nobody knows."""
    for name in dict.fromkeys((*(dataset.default or ()), *(dataset.named or ()))):
        found = _NAMED.fullmatch(name)
        if found is None:
            continue
        kind, word = found[1], found[2]
        known = published(word) if kind == "streams" else registry.get(ONTOLOGY, word) is not None
        if not known:
            what = f"nobody ever published to {word}" if kind == "streams" else f"there is no ontology {word}"
            raise placed(text, what, lambda _, token: token.text == name)  # noqa: B023 - it is called at once


def nowhere(text: str, stream: str) -> InvalidField:
    """Nothing was ever published to the stream of a window."""
    named = re.compile(rf"<?(.*[/:])?{re.escape(stream)}>?")

    def is_it(on: Token, name: Token) -> bool:
        return on.key in ("ON", "STREAM") and named.fullmatch(name.text) is not None

    return placed(text, f"nobody ever published to {stream}, and no other query does", is_it)


def placed(text: str, message: str, is_it: Callable[[Token, Token], bool]) -> InvalidField:
    """What is wrong with a word, which is known by the one before it and itself; with its place, if it is there."""
    source = SourceText(text)
    offset = next((token.offset for before, token in pairwise(source.tokens()) if is_it(before, token)), None)
    if offset is None:
        return InvalidField("query", message)
    return InvalidField("query", message, place=source.place(offset), excerpt=source.excerpt(offset))
