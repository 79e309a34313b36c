"""Worlds with a policy: events, rules and people from small lists, and what the rules leave, worked out by the book.

Nothing of it uses `triplewire.security` but to read the policy that is to be tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from string import digits
from typing import Any

import orjson
from hypothesis import strategies as st

from triplewire.model import Event
from triplewire.model.terms import RDF_TYPE, XSD
from triplewire.security import Principal
from triplewire.storage.lake.data_files import FileWriter, parquet_relation
from triplewire.storage.lake.ports import DataFile, Snapshot, VersionOrTime
from triplewire.storage.log.appending import entries_table

INTEGER = f"^^<{XSD}integer>"
NODES = ("<urn:n:a>", "<urn:n:b>", "<urn:n:c>")
CLASSES = ("<urn:c:Open>", "<urn:c:Shut>", "<urn:d:Other>")
PREDICATES = ("<urn:p:one>", "<urn:p:two>", "<urn:q:three>")
LITERALS = (f'"1"{INTEGER}', f'"2"{INTEGER}', '"text"', '"(*"')
STREAMS = ("home", "city-1", "city-2")
IDS = ("urn:open:", "urn:closed:")
Patterns = Mapping[str, Sequence[str]]
PATTERNS: Patterns = {
    "streams": ("home", "city-*", "city-1", "*"),
    "graphs": ("urn:open:*", "urn:closed:*", "*"),
    "classes": ("urn:c:Open", "urn:c:Shut", "urn:c:*", "urn:d:Other", "*"),
    "predicates": ("urn:p:one", "urn:p:two", "urn:p:*", "urn:q:three", RDF_TYPE[1:-1], "*"),
}
PEOPLE = {"ann": ("doctor",), "bea": ("nurse",), "eve": ()}
SELECTORS = ("*", "role:doctor", "role:nurse", "name:eve", "name:*")
GRANTS = ("*", "query:home", "query:city-*")


@dataclass(frozen=True)
class Occurrence:
    """An event in a stream."""

    stream: str
    id: str
    lines: tuple[str, ...]

    @property
    def time(self) -> int:
        """When it came, by the number at the end of its id; the same whatever else there is."""
        return int(self.id[len(self.id.rstrip(digits)) :])

    @property
    def event(self) -> Event:
        return Event(self.id, "\n".join(self.lines))


@dataclass(frozen=True)
class Ruling:
    """A rule, with what it allows and denies by kind."""

    who: tuple[str, ...]
    but: tuple[str, ...]
    allow: dict[str, tuple[str, ...]]
    deny: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class World:
    """What is there, what the policy says, and who asks."""

    occurrences: tuple[Occurrence, ...]
    defaults: dict[str, str]
    rules: tuple[Ruling, ...]
    name: str
    grant: str = "*"
    note: str = field(default="", compare=False)

    @property
    def principal(self) -> Principal:
        return Principal.granted(self.name, [self.grant], PEOPLE[self.name])

    def policy(self) -> str:
        """As TOML."""
        sides = ", ".join(f'{kind} = "{effect}"' for kind, effect in self.defaults.items())
        return f'[default]\nsee = {{ {sides} }}\npublish = "allow"\n' + "".join(
            _written(number, rule) for number, rule in enumerate(self.rules)
        )

    def seen(self) -> tuple[Occurrence, ...]:
        """What is left for who asks."""
        left = (Occurrence(each.stream, each.id, tuple(self._left(each))) for each in self.occurrences)
        return tuple(each for each in left if each.lines)

    def _left(self, occurrence: Occurrence) -> list[str]:
        granted = self.grant.partition(":")[2] or "*"
        if not _covers(granted, occurrence.stream) or not self._sees("streams", occurrence.stream):
            return []
        if not self._sees("graphs", occurrence.id):
            return []
        quads = [tuple(line.split("\t")) for line in occurrence.lines]
        hidden = {s for s, p, o in quads if p == RDF_TYPE and not self._sees("classes", o[1:-1])}
        return [
            "\t".join((s, p, o))
            for s, p, o in quads
            if self._sees("predicates", p[1:-1]) and s not in hidden and o not in hidden
        ]

    def _sees(self, kind: str, name: str) -> bool:
        mine = [rule for rule in self.rules if self._chosen(rule.who) and not self._chosen(rule.but)]
        if any(_covers(pattern, name) for rule in mine for pattern in rule.deny.get(kind, ())):
            return False
        if any(_covers(pattern, name) for rule in mine for pattern in rule.allow.get(kind, ())):
            return True
        return self.defaults[kind] == "allow"

    def _chosen(self, selectors: Sequence[str]) -> bool:
        for selector in selectors:
            by, _, pattern = selector.partition(":")
            named = {"role": PEOPLE[self.name], "name": (self.name,), "*": ("",)}[by]
            if by == "*" or any(_covers(pattern, each) for each in named):
                return True
        return False

    def to_json(self) -> bytes:
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> World:
        occurrences = tuple(Occurrence(o["stream"], o["id"], tuple(o["lines"])) for o in document["occurrences"])
        rules = tuple(Ruling(**each) for each in document["rules"])
        return cls(**{**document, "occurrences": occurrences, "rules": rules})


def _covers(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _written(number: int, rule: Ruling) -> str:
    lines = ["[[see]]", f'name = "rule {number}"', f"who = {_list(rule.who)}"]
    lines += [f"except = {_list(rule.but)}"] if rule.but else []
    for effect, said in (("allow", rule.allow), ("deny", rule.deny)):
        for kind, patterns in said.items():
            lines.append(f"{effect}.{kind} = {_list([_pattern(kind, each) for each in patterns])}")
    return "\n".join(lines) + "\n"


def _list(texts: Sequence[str]) -> str:
    return orjson.dumps(list(texts)).decode()


def _pattern(kind: str, pattern: str) -> str:
    if kind == "streams" or pattern == "*":
        return pattern
    return f"<{pattern[:-1]}>*" if pattern.endswith("*") else f"<{pattern}>"


def worlds() -> st.SearchStrategy[World]:
    lines = st.one_of(
        st.tuples(st.sampled_from(NODES), st.sampled_from(PREDICATES), st.sampled_from((*NODES, *LITERALS))),
        st.tuples(st.sampled_from(NODES), st.just(RDF_TYPE), st.sampled_from(CLASSES)),
    ).map("\t".join)
    bodies = st.lists(lines, min_size=1, max_size=5, unique=True).map(tuple)
    drafts = st.lists(st.tuples(st.sampled_from(STREAMS), st.sampled_from(IDS), bodies), min_size=1, max_size=6)
    occurrences = drafts.map(lambda all: tuple(Occurrence(s, f"{i}{n}", b) for n, (s, i, b) in enumerate(all)))
    people = st.tuples(st.sampled_from(sorted(PEOPLE)), st.sampled_from(GRANTS))
    return st.tuples(occurrences, policies(), people).map(lambda made: World(made[0], *made[1], *made[2]))


def policies(patterns: Patterns = PATTERNS) -> st.SearchStrategy[tuple[dict[str, str], tuple[Ruling, ...]]]:
    """With little that would be said in vain: nothing is allowed that is by default."""
    effects = st.sampled_from(("allow", "allow", "allow", "deny"))
    defaults = st.fixed_dictionaries(dict.fromkeys(patterns, effects))
    return defaults.flatmap(
        lambda said: st.lists(_rules(said, patterns), min_size=1, max_size=3).map(lambda rules: (said, tuple(rules)))
    )


def _rules(defaults: dict[str, str], patterns: Patterns) -> st.SearchStrategy[Ruling]:
    denied = {kind: st.sampled_from(some).map(_one) for kind, some in patterns.items()}
    allowed = {kind: denied[kind] for kind, effect in defaults.items() if effect == "deny"}
    some = [st.fixed_dictionaries({kind: denied[kind]}) for kind in patterns if kind not in allowed]
    nothing: st.SearchStrategy[dict[str, tuple[str, ...]]] = st.just({})
    who = st.sampled_from(SELECTORS).map(_one)
    but = st.sampled_from(((), (), ("role:doctor",), ("name:eve",)))
    return st.builds(Ruling, who, but, st.fixed_dictionaries(allowed), st.one_of(*(some or [nothing])))


def _one(text: str) -> tuple[str, ...]:
    return (text,)


@dataclass
class Shelved:
    """Snapshots that are known, the last of which is now."""

    snapshots: Sequence[Snapshot]

    def files(self, at: VersionOrTime | None = None) -> Snapshot:
        assert at is None or isinstance(at, int)
        return self.snapshots[-1 if at is None else at]


def snapshot(path: Path, occurrences: Sequence[Occurrence], *, parted: bool = False, version: int = 0) -> Snapshot:
    """The events in files; `parted`, the quads of each lie in two."""
    rows = [
        (at, each.stream, each.id, "\n".join(each.lines), None, None, each.time, each.time, "text/turtle", None)
        for at, each in enumerate(occurrences, 1)
    ]
    writer = FileWriter(path)
    file = writer.write(entries_table([rows]))
    files: tuple[DataFile, ...] = (file,)
    if parted:
        whole = parquet_relation([f"{path}/{file.path}"])
        parts = ("<", ">=")
        files = tuple(writer.write_quads(f"(FROM {whole} WHERE predicate {side} '<urn:p')", "z") for side in parts)
    writer.close()
    return Snapshot(str(path), version, len(occurrences), 0, -1, tuple(each for each in files if each.rows))
