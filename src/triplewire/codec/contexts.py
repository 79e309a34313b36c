"""Contexts of JSON-LD that would cost more than their document: they are refused before a parser sees them.

A term may be defined by another, and that by a third: parsers follow by calls. What it stands for is written out for
each, and a context inside of others begins as a copy of them. So a few kilobytes overflow the stack or fill memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from triplewire.config import limits
from triplewire.model.errors import InputError

_PAIR = 100
"""Bytes that a definition takes beside its texts, about."""


_MEMBERS = 16
"""Of a definition: JSON-LD knows thirteen."""


class _Object(list[tuple[str, object]]):
    """A JSON object with all its members, also those that are given twice."""


@dataclass(frozen=True)
class _Around:
    """The contexts around a value: what they take, how long their bases are together, and whether terms of theirs bring
    contexts of their own."""

    size: int = 0
    base: int = 0
    scoped: bool = False


def check_contexts(body: bytes) -> None:
    """Raises InputError for contexts over a limit. What is no JSON is left to the parser."""
    # A key may be written with escapes. So few members can do no harm.
    if body.count(b":") <= limits.NESTING or not (b"@context" in body or b"\\u" in body):
        return
    try:
        document = json.loads(body, object_pairs_hook=_Object)
    except (ValueError, RecursionError):
        return
    spent = 0
    for size in _copies(document):
        spent += size
        if spent > limits.CONTEXT_BYTES:
            raise InputError(f"the contexts take more than the limit of {limits.CONTEXT_BYTES} bytes; nest fewer")


def _copies(document: object) -> Iterator[int]:
    """What each context takes that is made while the document is read."""
    waiting = [(document, _Around())]
    while waiting:
        value, around = waiting.pop()
        if isinstance(value, _Object):
            for local in _contexts(value):
                around = _within(local, around)
                yield around.size
            if around.scoped:
                yield around.size
        if isinstance(value, list):
            members = (each for _, each in value) if isinstance(value, _Object) else value
            waiting += [(each, around) for each in members if isinstance(each, list)]


def _contexts(value: _Object) -> Iterator[_Object | None]:
    for name, given in value:
        if name == "@context":
            several = given if isinstance(given, list) and not isinstance(given, _Object) else [given]
            yield from (each for each in several if each is None or isinstance(each, _Object))


def _within(local: _Object | None, around: _Around) -> _Around:
    if local is None:
        return _Around()
    base = around.base + sum(len(str(given)) for name, given in local if name == "@base")
    if base > limits.IRI_CHARACTERS:
        raise InputError(f"the base is longer than the limit of {limits.IRI_CHARACTERS} characters")
    inner = [each for _, given in local if isinstance(given, _Object) for each in _contexts(given)]
    size = around.size + _size(local) + sum(_PAIR * len(each or ()) for each in inner)
    return _Around(size, base, around.scoped or bool(inner))


def _size(local: _Object) -> int:
    """Of a context whose terms are written out. Raises InputError where they follow one another for too long."""
    names = dict(local)
    vocabulary = len(str(names.get("@vocab", "")))
    known: dict[str, tuple[int, int]] = {}
    for name in names:
        _follow(name, names, known)
    return sum(length + vocabulary + _PAIR for _, length in known.values())


def _follow(name: str, names: dict[str, object], known: dict[str, tuple[int, int]]) -> None:
    """Note how many terms there are behind one, and how long it becomes, and the same for those."""
    path = [name]
    while path:
        term = path[-1]
        texts = _texts(names[term])
        behind = {each for text in (term, *texts) for each in (text, text.partition(":")[0]) if each in names}
        unknown = behind - known.keys() - set(path)
        if unknown:
            path.append(unknown.pop())
            if len(path) > limits.NESTING:
                raise InputError(f"terms of a context refer to one another over more than {limits.NESTING} steps")
            continue
        path.pop()
        found = [known[each] for each in behind if each in known]
        steps, length = max((s for s, _ in found), default=0), max((n for _, n in found), default=0)
        known[term] = (steps + 1, length + len(term) + sum(map(len, texts)))
        if steps >= limits.NESTING:
            raise InputError(f"terms of a context refer to one another over more than {limits.NESTING} steps")


def _texts(definition: object) -> list[str]:
    """Those of a definition that may name other terms. Raises InputError for more members than there can be."""
    if isinstance(definition, _Object):
        if len(definition) > _MEMBERS:
            raise InputError(f"the definition of a term has more than {_MEMBERS} members")
        return [each for _, each in definition if isinstance(each, str)]
    return [definition] if isinstance(definition, str) else []
