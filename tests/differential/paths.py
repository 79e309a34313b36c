"""Paths: every kind, nested; the links of the data make cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import strategies as st

from tests.differential import vocabulary


@dataclass(frozen=True)
class Step:
    link: str


@dataclass(frozen=True)
class Negated:
    forward: tuple[str, ...]
    backward: tuple[str, ...]


@dataclass(frozen=True)
class Inverse:
    path: Path


@dataclass(frozen=True)
class Sequence:
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Alternative:
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Repeat:
    path: Path
    sign: str


Path: TypeAlias = Step | Negated | Inverse | Sequence | Alternative | Repeat


def spelled(path: Path) -> str:
    if isinstance(path, Step):
        return path.link
    if isinstance(path, Negated):
        return f"!({'|'.join((*path.forward, *(f'^{each}' for each in path.backward)))})"
    if isinstance(path, Inverse):
        return f"^({spelled(path.path)})"
    if isinstance(path, Repeat):
        return f"({spelled(path.path)}){path.sign}"
    return f"({('/' if isinstance(path, Sequence) else '|').join(map(spelled, path.paths))})"


def defined(subject: str, path: Path, target: str, fresh: Iterator[str]) -> str:
    """The path as the joins and unions that it stands for; pyoxigraph makes alternatives distinct, which they are not,
    and so it does with steps along any predicate but some, where both ends are known. Repetitions are distinct, so they
    stay."""
    if isinstance(path, Inverse):
        return defined(target, path.path, subject, fresh)
    if isinstance(path, Sequence):
        nodes = (subject, *(next(fresh) for _ in path.paths[1:]), target)
        pairs = zip(nodes, path.paths, nodes[1:], strict=False)
        return " ".join(defined(start, each, end, fresh) for start, each, end in pairs)
    if isinstance(path, Alternative):
        return " UNION ".join(f"{{ {defined(subject, each, target, fresh)} }}" for each in path.paths)
    if isinstance(path, Negated) and path.forward and path.backward:
        both = Alternative((Negated(path.forward, ()), Negated((), path.backward)))
        return defined(subject, both, target, fresh)
    if isinstance(path, Negated):
        start, end = (subject, target) if path.forward else (target, subject)
        step = next(fresh)
        return f"{{ {start} {step} {end} . FILTER({step} NOT IN ({', '.join(path.forward or path.backward)})) }}"
    return f"{subject} {spelled(path)} {target} ."


_links = st.sampled_from((*vocabulary.LINKS, *vocabulary.LINKS, vocabulary.VALUE))
_some = st.lists(_links, max_size=2, unique=True).map(tuple)
_negated = st.tuples(_some, _some).map(
    lambda given: Negated(*given) if any(given) else Negated((vocabulary.LINKS[0],), ())
)
_leaves = st.one_of(_links.map(Step), _links.map(Step), _negated)


def _grown(inner: st.SearchStrategy[Path], signs: str) -> st.SearchStrategy[Path]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        inner.map(Inverse),
        several.map(Sequence),
        several.map(Alternative),
        st.builds(Repeat, inner, st.sampled_from(signs)),
    )


paths: st.SearchStrategy[Path] = st.recursive(_leaves, lambda inner: _grown(inner, "+*?"), max_leaves=4)
solid_paths: st.SearchStrategy[Path] = st.recursive(_leaves, lambda inner: _grown(inner, "+"), max_leaves=3)
"""Never of length zero, so that any constant may be at their ends: pyoxigraph finds no path from a term that the data
has not to itself."""
chains: st.SearchStrategy[Path] = st.recursive(
    _links.map(Step),
    lambda inner: st.one_of(inner.map(Inverse), st.lists(inner, min_size=2, max_size=3).map(tuple).map(Sequence)),
    max_leaves=3,
)
"""Steps one after the other, either way."""
