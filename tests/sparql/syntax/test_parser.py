"""Parsing of text into algebra."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplewire.model.terms import RDF, XSD
from triplewire.sparql import Apply, Conjunction, Const, Pattern, Var, parse_query, to_conjunction

E = "http://example.org/"


def parse(text: str) -> Conjunction:
    found = to_conjunction(parse_query(text))
    assert found is not None
    return found


def patterns(where: str) -> tuple[Pattern, ...]:
    return parse(f"PREFIX : <{E}> SELECT * {{ {where} }}").patterns


def objects(text: str) -> list[str]:
    return [each.object.term for each in patterns(f":s :p {text}") if isinstance(each.object, Const)]


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("21.5", f'"21.5"^^<{XSD}decimal>'),
        ("+05", f'"+05"^^<{XSD}integer>'),
        ("-1e3", f'"-1e3"^^<{XSD}double>'),
        (".5", f'".5"^^<{XSD}decimal>'),
        ("1.E0", f'"1.E0"^^<{XSD}double>'),
        ("true", f'"true"^^<{XSD}boolean>'),
        ("'a'", '"a"'),
        (f"'a'^^<{XSD}string>", '"a"'),
        ("'a'@EN-gb", '"a"@en-gb'),
        ("'''a'b\n'''", '"a\'b\\n"'),
        ('"\\u00e9\\t\\"\\\\"', '"é\\t\\"\\\\"'),
        (":a\\.b", f"<{E}a.b>"),
        (":a%20b", f"<{E}a%20b>"),
        (f"<{E}\\u00e9>", f"<{E}é>"),
        ("a:", None),
    ],
)
def test_constants_are_canonical_text(text: str, term: str | None) -> None:
    found = parse(f"PREFIX : <{E}> PREFIX a: <{E}> SELECT * {{ :s :p {text} }}").patterns[0].object
    assert found == Const(term or f"<{E}>")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_strings_are_the_text_that_data_have(lexical: str) -> None:
    escaped = "".join(f"\\U{ord(character):08X}" for character in lexical)
    line = ox.serialize(
        [ox.Triple(ox.NamedNode(E), ox.NamedNode(E), ox.Literal(lexical))], format=ox.RdfFormat.N_TRIPLES
    )
    assert line is not None
    assert f"<{E}> <{E}> {objects(chr(34) + escaped + chr(34))[0]} .\n" == line.decode()


def test_relative_iris_are_resolved_against_the_base() -> None:
    query = parse(f"BASE <{E}a/b> PREFIX p: <../c#> SELECT * {{ <d> p:e <?f> }}")
    assert query.patterns == (Pattern(Const(f"<{E}a/d>"), Const(f"<{E}c#e>"), Const(f"<{E}a/b?f>")),)


def test_lists_of_properties_and_objects_are_spelled_out_in_reading_order() -> None:
    s, p, q = Var("s"), Const(f"<{E}p>"), Const(f"<{E}q>")
    rdf_type = Const(f"<{RDF}type>")
    found = patterns("?s :p ?a, ?b ; a :T ; :q ?c ; .")
    assert [(each.predicate, each.object) for each in found] == [
        (p, Var("a")),
        (p, Var("b")),
        (rdf_type, Const(f"<{E}T>")),
        (q, Var("c")),
    ]
    assert {each.subject for each in found} == {s}


def test_blank_nodes_are_variables_that_nobody_can_select() -> None:
    query = parse(f"PREFIX : <{E}> SELECT * {{ _:x :p [ :q ?a ; :r [] ] }}")
    outer, inner, last = query.patterns
    assert outer.subject == Var("_:x")
    assert isinstance(outer.object, Var)
    assert outer.object == inner.subject == last.subject
    assert all(isinstance(each, Var) and each.name.startswith("_:") for each in (outer.object, last.object))
    assert query.projection == ("a",)


def test_collections_are_chains_of_cells() -> None:
    found = patterns("?s :p (1 ?x)")
    names = [each.predicate.term.removeprefix(f"<{RDF}") for each in found if isinstance(each.predicate, Const)]
    assert names == [f"<{E}p>", "first>", "rest>", "first>", "rest>"]
    assert found[-1].object == Const(f"<{RDF}nil>")


def test_the_star_selects_names_in_reading_order() -> None:
    assert parse("SELECT * { ?b ?a ?c GRAPH ?g { ?a ?d ?b } }").projection == ("b", "a", "c", "g", "d")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1 + 2 * 3", ("+", 1, ("*", 2, 3))),
        ("1 - 2 - 3", ("-", ("-", 1, 2), 3)),
        ("1 -2", ("-", 1, 2)),
        ("?x-1", ("-", "x", 1)),
        ("- ?x", ("-", "x")),
        ("!?x && ?y || ?z", ("||", ("&&", ("!", "x"), "y"), "z")),
        ("?x || ?y || ?z", ("||", "x", "y", "z")),
        ("1 < 2 + 3", ("<", 1, ("+", 2, 3))),
        ("?x NOT IN (1, 2)", ("not in", "x", 1, 2)),
        ("?x in ()", ("in", "x")),
        ("(?x = 1) = ?y", ("=", ("=", "x", 1), "y")),
        ("strStarts(str(?x), ?y)", ("strstarts", ("str", "x"), "y")),
        ("isURI(?x)", ("isiri", "x")),
    ],
)
def test_operators_bind_as_in_the_grammar(text: str, tree: object) -> None:
    query = parse(f"SELECT * {{ ?x ?y ?z FILTER({text}) }}")
    assert [_plain(each) for each in query.filters] == [tree]


def _plain(expression: object) -> object:
    match expression:
        case Apply(op, args):
            return (op, *map(_plain, args))
        case Var(name):
            return name
        case Const(term):
            return int(term.split('"')[1])
    raise AssertionError(expression)
