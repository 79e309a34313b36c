"""Paths: property paths as joins and unions of steps, and closures for what repeats.

A path of fixed length is rewritten into patterns. What repeats needs recursion: its pairs, each once, are a named
relation that engines compute in their own ways.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from triplewire.sparql.algebra import (
    Apply,
    Basic,
    Const,
    Filter,
    Inverse,
    Negated,
    Node,
    Operator,
    Path,
    Pattern,
    Reach,
    Repeat,
    Union,
    Var,
)
from triplewire.sparql.compile.closures import Closure, Pairs, Steps
from triplewire.sparql.compile.contexts import Context
from triplewire.sparql.compile.joins import joined
from triplewire.sparql.compile.leaves import placed
from triplewire.sparql.compile.relations import Bare, Joined, Relation, Source, Table
from triplewire.sparql.compile.sql import Sql, among, column, equal, text
from triplewire.sparql.compile.values import ANY, Value
from triplewire.sparql.rules.paths import expanded

ENDS = ("subject", "object")


def reached(context: Context, reach: Reach) -> Relation:
    """The solutions of a path pattern."""
    match reach.path:
        case Repeat():
            return _repeated(context, reach, reach.path)
        case Negated():
            return context.compile(_negations(context, reach, reach.path))
    return context.compile(expanded(reach, lambda: Var(context.build.alias(".p"))))


def _negations(context: Context, reach: Reach, path: Negated) -> Operator:
    """Forward, backward, or both ways."""
    ways = [] if path.forward is None else [_negated(context, reach.subject, path.forward, reach.object)]
    if path.backward is not None:
        ways.append(_negated(context, reach.object, path.backward, reach.subject))
    return ways[0] if len(ways) == 1 else Union(ways[0], ways[1])


def _negated(context: Context, subject: Node, excluded: tuple[Const, ...], object_: Node) -> Operator:
    step = Var(context.build.alias(".p"))
    return Filter(Basic((Pattern(subject, step, object_),)), (Apply("not in", (step, *excluded)),))


def _repeated(context: Context, reach: Reach, path: Repeat) -> Relation:
    """Pairs of terms between which the path leads, each once. It is followed from the end that is known. Both ends may
    be literals: a path of no length has its start as its end, and an inverse step starts at an object."""
    if isinstance(reach.object, Const) and not isinstance(reach.subject, Const):
        back = Repeat(Inverse(path.path), path.least, path.once)
        return _repeated(context, Reach(reach.object, back, reach.subject), back)
    alias = context.build.alias("p")
    name = _pairs(context, reach, path)
    relation = Relation((Joined(Table(name, alias)),), keys=_keys(context, alias))
    ends: list[tuple[Node, Value]] = [(reach.subject, Bare(alias, "s", ANY)), (reach.object, Bare(alias, "o", ANY))]
    found = placed(relation, ends)
    return joined(context, context.start(), found) if context.frame else found


def _pairs(context: Context, reach: Reach, path: Repeat) -> str:
    """The name of the relation of all pairs."""
    build = context.build
    edges = build.define(Steps(_edges(context, path.path), context.keyed))
    start = reach.subject.term if isinstance(reach.subject, Const) else None
    if path.once:
        return build.define(Pairs(edges, _zero(context, reach), context.keyed))
    closure = build.define(Closure(edges, start, context.keyed))
    return build.define(Pairs(closure, _zero(context, reach), context.keyed)) if path.least == 0 else closure


def _edges(context: Context, path: Path) -> Relation:
    """The pairs that one repetition connects, as the values of `s` and `o`."""
    inner = replace(context, frame=None, events=False, counted=False, graph=Var(".g") if context.keyed else None)
    if isinstance(context.graph, Const):
        inner = replace(inner, graph=context.graph)
    return inner.compile(Reach(Var("s"), path, Var("o")))


def _keys(context: Context, alias: str) -> dict[str, Sql]:
    """What tells pairs of one event from those of another, under the names that the context has for it."""
    graph = {name: column(alias, name) for name in ("graph", "name")} if context.graph is not None else {}
    return {"position": column(alias, "graph"), **graph} if context.events else graph


def _zero(context: Context, reach: Reach) -> exp.Query:
    """Paths of no length: from each node of the graph to itself, or from the one that the pattern names."""
    if isinstance(reach.subject, Const):
        term = text(reach.subject.term)
        alone = exp.select(exp.alias_(term, "s"), exp.alias_(term.copy(), "o"))
        return _of_graphs(context, alone, context.headers("")) if context.keyed else alone
    ends = [exp.select(exp.alias_(exp.column(place), "s"), exp.alias_(exp.column(place), "o")) for place in ENDS]
    return exp.union(*(_of_graphs(context, each, context.quads("")) for each in ends), distinct=True, copy=False)


def _of_graphs(context: Context, select: exp.Select, source: Source) -> exp.Select:
    """Of the graphs that the context asks for, with what tells them apart."""
    if context.keyed:
        keys = [exp.alias_(exp.column("position"), "graph"), exp.alias_(exp.column("graph"), "name")]
        select = select.select(*keys)
    graphs = context.dataset.named if context.graph is not None else context.dataset.default
    return _within(select.from_(source.sql()), graphs, context.graph)


def _within(select: exp.Select, graphs: tuple[str, ...] | None, graph: Node | None) -> exp.Select:
    if isinstance(graph, Const):
        select = select.where(equal(exp.column("graph"), text(graph.term)))
    if graphs is None:
        return select
    return select.where(among(exp.column("graph"), graphs) if graphs else exp.false())
