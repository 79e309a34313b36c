"""Generated events and queries: the answers are those of pyoxigraph, as bags."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sparql.worlds import World, answer, conjunctive, expanded, lift, matches, single
from triplewire.model import Event
from triplewire.model.terms import XSD

E = "http://example.org/"
RESOURCES = tuple(f"<{E}{name}>" for name in "abc")
PREDICATES = tuple(f"<{E}{name}>" for name in "pq")
LITERALS = (
    *(f'"{lexical}"^^<{XSD}integer>' for lexical in ("0", "1", "2", "-1", "9007199254740993", "9007199254740992")),
    *(f'"{lexical}"^^<{XSD}decimal>' for lexical in ("0.5", "1", "-2.25", "0.1")),
    *(f'"{lexical}"^^<{XSD}double>' for lexical in ("0.5", "1", "0.1", "INF")),
    *(f'"{lexical}"^^<{XSD}float>' for lexical in ("0.5", "0.1")),
    *(f'"{lexical}"^^<{XSD}boolean>' for lexical in ("true", "false")),
    *(
        f'"{lexical}"^^<{XSD}dateTime>'
        for lexical in ("2020-01-01T00:00:00Z", "2020-01-01T01:00:00", "2020-01-03T00:00:00.5Z")
    ),
    *(f'"{lexical}"^^<{XSD}date>' for lexical in ("2020-01-01", "2020-01-02Z")),
    '""',
    '"a"',
    '"ab"',
    '"a\\"b\\\\"',
    '"é\\n"',
    '"a"@en',
    '"ab"@en',
    '"a"@fr',
    f'"a"^^<{E}type>',
    f'"b"^^<{E}type>',
    f'"x"^^<{XSD}integer>',
)
"""Literals in the lexical forms that pyoxigraph's store keeps; it rewrites others."""

VARIABLES = ("?x", "?y", "?z", "_:b")
NUMBERS = tuple(
    term for term in LITERALS if term.endswith(("integer>", "decimal>", "double>", "float>")) and "INF" not in term
)

terms = st.sampled_from((*RESOURCES, *LITERALS))
lines = st.tuples(st.sampled_from(RESOURCES), st.sampled_from(PREDICATES), terms).map("\t".join)
texts = st.lists(lines, min_size=1, max_size=5, unique=True).map("\n".join)
worlds = st.lists(texts, min_size=1, max_size=3).map(
    lambda found: World(tuple(Event(f"{E}event/{number}", text) for number, text in enumerate(found)))
)

subjects = st.sampled_from((*VARIABLES, *RESOURCES))
predicates = st.sampled_from((*PREDICATES, "?y"))
triples = st.tuples(subjects, predicates, st.one_of(st.sampled_from(VARIABLES), terms)).map(" ".join)
blocks = st.lists(triples, min_size=1, max_size=2).map(" . ".join)
groups = st.one_of(
    blocks,
    st.tuples(st.sampled_from(("?g", f"<{E}event/0>")), blocks).map(lambda parts: f"GRAPH {parts[0]} {{ {parts[1]} }}"),
)

variables = st.sampled_from(("?x", "?y", "?z", "?g"))
leaves = st.one_of(variables, variables, terms)
numeric = st.one_of(variables, st.sampled_from(NUMBERS))


def _call(name: str, *arguments: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*arguments).map(lambda given: f"{name}({', '.join(given)})")


strings = st.one_of(variables, st.sampled_from(('"a"', '"b"', '"a"@en')), _call("STR", variables))
sums = st.tuples(numeric, st.sampled_from("+-*/"), numeric).map(lambda parts: f"({' '.join(parts)})")
operands = st.one_of(
    leaves, leaves, sums, _call("STR", variables), _call("LANG", variables), _call("DATATYPE", variables)
)
equalities = st.tuples(operands, st.sampled_from(("=", "!=", "<", ">")), operands).map(" ".join)
bounds = st.tuples(operands, st.sampled_from(("<=", ">=")), st.sampled_from(NUMBERS)).map(" ".join)
comparisons = st.one_of(equalities, bounds)
"""Only with numbers are terms asked to be `<=`: pyoxigraph finds that of any term and itself."""

tests = st.one_of(
    comparisons,
    comparisons,
    st.tuples(operands, st.sampled_from(("IN", "NOT IN")), st.lists(leaves, min_size=1, max_size=3)).map(
        lambda parts: f"{parts[0]} {parts[1]} ({', '.join(parts[2])})"
    ),
    *(_call(name, strings, strings) for name in ("STRSTARTS", "STRENDS", "CONTAINS")),
    _call("REGEX", strings, st.sampled_from(('"^a"', '"b$"', '"A"'))),
    *(_call(name, leaves) for name in ("isIRI", "isLiteral", "isNumeric")),
    _call("sameTerm", operands, operands),
    _call("BOUND", variables),
)
conditions = st.recursive(
    tests.map(lambda inner: f"({inner})"),
    lambda inner: st.one_of(
        inner.map(lambda each: f"(!{each})"),
        st.tuples(inner, st.sampled_from(("&&", "||")), inner).map(lambda parts: f"({' '.join(parts)})"),
    ),
    max_leaves=3,
)


def _where(parts: tuple[list[str], list[str]]) -> str:
    """Groups that share a blank node would be an error, so each has its own."""
    own = [group.replace("_:b", f"_:b{number}") for number, group in enumerate(parts[0])]
    return f"{{ {' '.join(f'{{ {group} }}' for group in own)} {' '.join(f'FILTER{each}' for each in parts[1])} }}"


wheres = st.tuples(st.lists(groups, min_size=1, max_size=2), st.lists(conditions, max_size=2)).map(_where)
forms = st.sampled_from(("SELECT *", "SELECT ?x", "SELECT DISTINCT ?y ?x", "ASK"))
queries = st.tuples(forms, wheres).map(" ".join)

relaxed = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@relaxed
@given(worlds, queries)
def test_history_answers_as_pyoxigraph(world: World, text: str) -> None:
    assert world.history(text) == world.oracle(text)


@relaxed
@given(worlds, wheres, st.booleans())
def test_events_match_as_pyoxigraph(world: World, where: str, typed: bool) -> None:
    text = f"SELECT * {where}"
    query = conjunctive(text)
    found = matches(world, lift(query, typed=typed))
    for position, event in enumerate(world.events, start=1):
        taken = found[position].elements() if position in found else ()
        rows = Counter(expanded(event, query, numbers) for numbers in taken)
        assert rows == answer(single(event), text)
