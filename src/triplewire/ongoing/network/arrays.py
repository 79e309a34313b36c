"""Arrays of the network: what compiled code reads and writes, as records that lie one after the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.compiler import Bytes, Int8, Int32, Int64, Records, UInt64

SLOTS = 64
"""Slots of a chain at most: variables and constants of one query."""

NODE = np.dtype(
    [
        ("id", "u8"),
        ("salt", "u8"),
        ("span", "i8"),
        ("within", "i8"),
        ("predicate_start", "i8"),
        ("predicate_length", "i4"),
        ("width", "i4"),
        ("first_child", "i4"),
        ("children", "i4"),
        ("first_lift", "i4"),
        ("lifts", "i4"),
    ],
    align=True,
)
"""A step of some chain, after those before it: `id` names it in every process and at every time. `salt` is that of its
port; `width` counts the slots that are bound before it; `lifts` is -1 where no query ends. Pieces of an answer may be
`span` positions and `within` microseconds apart, as the most patient query behind it has it. The length of a predicate
is -1 where it names none."""

PORT = np.dtype(
    [
        ("id", "u8"),
        ("span", "i8"),
        ("within", "i8"),
        ("predicate_start", "i8"),
        ("predicate_length", "i4"),
        ("scope", "i4"),
        ("first_root", "i4"),
        ("roots", "i4"),
        ("joins", "i1"),
        ("lifts", "i1"),
    ],
    align=True,
)
"""By which triples come in: those with one predicate, or with any, of one scope; to be met by their values at the
places of the bits of `joins`, and only with constants that some query has at those of `lifts`. `roots` are nodes that
begin chains, where this is a port of beginnings; it is -1 at others. `span` and `within` are those of the most patient
node behind it."""

SLOT = np.dtype([("key", "u8"), ("head", "i4"), ("count", "i4")], align=True)
"""Of a table of hashes: the first of what has a key, and how much there is. A key of zero is none."""

GROUP = np.dtype(
    [
        ("span", "i8"),
        ("within", "i8"),
        ("start", "i8"),
        ("length", "i4"),
        ("node", "i4"),
        ("following", "i4"),
        ("alive", "i1"),
    ],
    align=True,
)
"""Queries that ask the same of what reaches a node; their constants, with tabs between them, are in the pool.
`following` is the next group of the same hash, or -1."""

ROW = np.dtype(
    [
        ("key", "u8"),
        ("id", "u8"),
        ("oldest", "i8"),
        ("newest", "i8"),
        ("began", "i8"),
        ("ended", "i8"),
        ("start", "i8"),
        ("length", "i4"),
        ("address", "i4"),
        ("kind", "i1"),
    ],
    align=True,
)
"""What travels and is kept: a triple that came in by the port `id`, or a partial result that waits at the node `id`. It
is met by its `key`. Its text has terms with tabs between them: those of the triple, or those of the slots. An address
of -1 is everywhere."""

PARTIAL, TRIPLE, SPREAD, PROBE = 0, 1, 2, 3
"""Kinds of rows. Of a key that is heavy, triples are kept wherever their own text leads them, and what waits for them
is kept everywhere. A triple is then `SPREAD`, and meets what waits everywhere; and it is sent once more, as `PROBE`, to
where it would have been kept, to meet what waited there before the key was heavy; as that it is not kept."""

ANSWER = np.dtype(
    [
        ("oldest", "i8"),
        ("newest", "i8"),
        ("start", "i8"),
        ("length", "i4"),
        ("group", "i4"),
    ],
    align=True,
)
"""A combination that answers the queries of a group: the positions of its oldest and newest triple, and its slots."""


class Plan(NamedTuple):
    """All that rows are routed and joined by."""

    nodes: Records
    roles: Int8
    """Three for each node."""
    references: Int32
    """Likewise."""
    children: Int32
    """Numbers of nodes."""
    lifts: Int32
    """Slots that hold constants, for each node at which queries end."""
    ports: Records
    roots: Int32
    """Numbers of nodes."""
    by_predicate: Records
    """Slots: the first of the ports of a predicate, by its hash."""
    anywhere: Int64
    """The first of the ports that take any predicate, and their number."""
    wanted: UInt64
    """Hashes of port and constants that some query has."""
    groups: Records
    by_constants: Records
    """Slots: the first group, by the hash of node and constants."""
    pool: Bytes
    spread: Int8
    """One number: whether rows are spread by values, or lie with their pattern."""
    heavy: UInt64
    """Keys under which too many triples lie for one place."""


class Out(NamedTuple):
    """Room for rows and answers. `counts`: rows, bytes of their text, answers, bytes of their text."""

    rows: Records
    text: Bytes
    answers: Records
    told: Bytes
    counts: Int64
    seen: Int64
    """For each port, how many triples came in by it."""
    starts: Int32
    """Where each slot of the text at hand begins, from its own beginning."""
    stops: Int32


class Entries(NamedTuple):
    """Events: texts one after the other, with position, time and the scopes that they are in."""

    text: Bytes
    start: Int64
    position: Int64
    time: Int64
    scopes: Any
    """A row of booleans for each event."""


class Held(NamedTuple):
    """Rows that are kept, with their texts, and an index of those by key."""

    rows: Records
    numbers: Int32
    """Of each row the node that it waits at, or -1."""
    text: Bytes
    following: Int32
    by_key: Records
