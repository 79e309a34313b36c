"""Groups and forms, translated as the SPARQL specification says."""

from __future__ import annotations

import pytest

from triplewire.model.terms import RDF, XSD, literal
from triplewire.sparql import Apply, Const, Pattern, Query, Var, parse_query
from triplewire.sparql.algebra import (
    Aggregate,
    Basic,
    Chain,
    Dataset,
    Either,
    Exists,
    Extend,
    Filter,
    Graph,
    Group,
    Inverse,
    Join,
    LeftJoin,
    Link,
    Minus,
    Negated,
    Operator,
    Order,
    Path,
    Reach,
    Repeat,
    Select,
    Service,
    Union,
    Values,
)

E = "http://example.org/"
S, V, X, Y = Var("s"), Var("o"), Var("x"), Var("y")


def query(text: str) -> Query:
    return parse_query(f"PREFIX : <{E}> {text}")


def where(text: str) -> Operator:
    found = query(f"SELECT * {{ {text} }}").where
    assert isinstance(found, Select)
    return found.inner


def selected(text: str) -> Select:
    found = query(text).where
    assert isinstance(found, Select)
    return found


def term(name: str) -> Const:
    return Const(f"<{E}{name}>")


def number(value: int) -> Const:
    return Const(f'"{value}"^^<{XSD}integer>')


def basic(*triples: tuple[Var, str, Var]) -> Basic:
    return Basic(tuple(Pattern(s, term(p), o) for s, p, o in triples))


P = basic((S, "p", V))
Q = basic((S, "q", X))
R = basic((S, "r", Y))
BIG = Apply(">", (X, number(1)))


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("", Basic()),
        ("{} {{}}", Basic()),
        ("?s :p ?o . ?s :q ?x", basic((S, "p", V), (S, "q", X))),
        ("?s :p ?o FILTER(?x > 1) ?s :q ?x", Filter(basic((S, "p", V), (S, "q", X)), (BIG,))),
        ("FILTER(?x > 1) . FILTER(?o) ?s :p ?o", Filter(P, (BIG, V))),
        ("?s :p ?o { ?s :q ?x }", Join(P, Q)),
        ("{ ?s :p ?o } { ?s :q ?x } . { ?s :r ?y }", Join(Join(P, Q), R)),
        ("{ ?s :p ?o } UNION { ?s :q ?x } UNION { ?s :r ?y }", Union(Union(P, Q), R)),
        ("?s :p ?o OPTIONAL { ?s :q ?x } ?s :r ?y", Join(LeftJoin(P, Q), R)),
        ("?s :p ?o OPTIONAL { ?s :q ?x FILTER(?x > 1) }", LeftJoin(P, Q, (BIG,))),
        ("?s :p ?o OPTIONAL { { ?s :q ?x FILTER(?x > 1) } }", LeftJoin(P, Filter(Q, (BIG,)))),
        ("OPTIONAL { ?s :q ?x }", LeftJoin(Basic(), Q)),
        ("?s :p ?o MINUS { ?s :q ?x FILTER(?x > 1) }", Minus(P, Filter(Q, (BIG,)))),
        ("?s :p ?o BIND(?o AS ?z) ?s :q ?x", Join(Extend(P, "z", V), Q)),
        ("?s :p ?o { BIND(?o AS ?z) }", Join(P, Extend(Basic(), "z", V))),
        ("GRAPH ?g { ?s :p ?o } GRAPH :g {}", Join(Graph(Var("g"), P), Graph(term("g"), Basic()))),
        ("VALUES ?x { 1 :a UNDEF }", Values(("x",), ((number(1).term,), (f"<{E}a>",), (None,)))),
        ("VALUES (?x ?y) { (:a UNDEF) ('a'@en :b) }", Values(("x", "y"), ((f"<{E}a>", None), ('"a"@en', f"<{E}b>")))),
        ("VALUES () { () () }", Values((), ((), ()))),
        ("?s :p ?o FILTER EXISTS { ?s :q ?x }", Filter(P, (Exists(Q),))),
        ("?s :p ?o FILTER NOT EXISTS { ?s :q ?x }", Filter(P, (Apply("!", (Exists(Q),)),))),
        ("?s :p ?o { SELECT ?s { ?s :q ?x } LIMIT 1 }", Join(P, Select(Q, ("s",), limit=1))),
        ("{ SELECT * { ?s :p ?o } VALUES ?z {} }", Select(Join(P, Values(("z",), ())), ("s", "o", "z"))),
    ],
)
def test_groups(text: str, operator: Operator) -> None:
    assert where(text) == operator


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("^:p", Inverse(Link(term("p")))),
        (":p/:q/^:r", Chain((Link(term("p")), Link(term("q")), Inverse(Link(term("r")))))),
        (":p|:q/:r", Either((Link(term("p")), Chain((Link(term("q")), Link(term("r"))))))),
        (":p*", Repeat(Link(term("p")), 0)),
        (":p+", Repeat(Link(term("p")), 1)),
        (":p?", Repeat(Link(term("p")), 0, once=True)),
        ("^:p*", Inverse(Repeat(Link(term("p")), 0))),
        ("(^:p)+", Repeat(Inverse(Link(term("p"))), 1)),
        ("!:p", Negated((term("p"),), None)),
        ("!^:p", Negated(None, (term("p"),))),
        ("!(:p|^:q|a)", Negated((term("p"), Const(f"<{RDF}type>")), (term("q"),))),
        ("!()", Negated((), None)),
        ("a/:p", Chain((Link(Const(f"<{RDF}type>")), Link(term("p"))))),
    ],
)
def test_paths(text: str, path: Path) -> None:
    assert where(f"?s {text} ?o") == Reach(S, path, V)


def test_a_path_that_is_an_iri_is_a_pattern() -> None:
    assert where("?s (:p) ?o") == P


def test_paths_stand_between_basic_patterns_in_reading_order() -> None:
    found = where("?s :p ?o ; :p* ?x . ?s :q ?x")
    assert found == Join(Join(P, Reach(S, Repeat(Link(term("p")), 0), X)), Q)


def test_a_sign_that_touches_a_number_is_its_own() -> None:
    assert where("?s :p+1") == Basic((Pattern(S, term("p"), Const(f'"+1"^^<{XSD}integer>')),))
    assert where("?s :p+ 1") == Reach(S, Repeat(Link(term("p")), 1), number(1))


def test_service_keeps_its_text_and_what_it_needs() -> None:
    found = where("SERVICE SILENT ?e { ?s :p <urn:nobody:knows> FILTER(nosuch(?s)) } # not this\n")
    text = "{ ?s :p <urn:nobody:knows> FILTER(nosuch(?s)) }"
    assert found == Service(Var("e"), True, f"PREFIX : <{E}>\n", text, ("s",))


def test_the_star_selects_what_is_in_scope() -> None:
    text = "?a :p ?b FILTER(?no) OPTIONAL { ?c :p _:x } MINUS { ?no ?no ?no } GRAPH ?d {} BIND(1 AS ?e) SERVICE ?f {}"
    sub = "{ SELECT ?g { ?g ?no ?no } } VALUES ?h {} FILTER EXISTS { ?no ?no ?no } ?i :p*/:q ?j"
    assert query(f"SELECT * {{ {text} {sub} }}").projection == tuple("abcdefghij")


def test_expressions_of_select_extend_in_order() -> None:
    found = selected("SELECT ?s (?o + 1 AS ?a) (?a AS ?b) { ?s :p ?o }")
    inner = Extend(Extend(P, "a", Apply("+", (V, number(1)))), "b", Var("a"))
    assert found == Select(inner, ("s", "a", "b"))


def test_aggregates_are_variables_of_the_group() -> None:
    found = selected(
        "SELECT ?s (COUNT(DISTINCT ?o) + COUNT(*) AS ?n) { ?s :p ?o } GROUP BY ?s (STR(?o)) (LANG(?o) AS ?l) "
        "HAVING (COUNT(*) > 1) ORDER BY DESC(SUM(?o)) ?l ?o LIMIT 3 OFFSET 4"
    )
    group = Group(
        P,
        (("s", S), (".key1", Apply("str", (V,))), ("l", Apply("lang", (V,)))),
        (
            (".agg0", Aggregate("count", V, distinct=True)),
            (".agg1", Aggregate("count")),
            (".agg2", Aggregate("sum", V)),
            (".agg3", Aggregate("sample", V)),
        ),
    )
    kept = Filter(group, (Apply(">", (Var(".agg1"), number(1))),))
    inner = Extend(kept, "n", Apply("+", (Var(".agg0"), Var(".agg1"))))
    order = (Order(Var(".agg2"), descending=True), Order(Var("l")), Order(Var(".agg3")))
    assert found == Select(inner, ("s", "n"), order=order, limit=3, offset=4)


def test_an_aggregate_alone_groups_all() -> None:
    found = selected("SELECT (GROUP_CONCAT(?o ; separator = '\\t') AS ?all) { ?s :p ?o }")
    group = Group(P, (), ((".agg0", Aggregate("group_concat", V, separator="\t")),))
    assert found == Select(Extend(group, "all", Var(".agg0")), ("all",))


def test_having_without_groups_is_a_filter() -> None:
    assert selected("SELECT ?s { ?s :p ?o } HAVING (?o) (?s)").inner == Filter(P, (V, S))


def test_trailing_values_are_joined_after_having() -> None:
    found = selected("SELECT ?s { ?s :p ?o } GROUP BY ?s HAVING (?s) VALUES ?s { 1 }").inner
    assert found == Join(Filter(Group(P, (("s", S),), ()), (S,)), Values(("s",), ((number(1).term,),)))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("ASK { ?s :p ?o }", Query("ask", P)),
        ("ASK {} VALUES ?x {}", Query("ask", Values(("x",), ()))),
        ("ASK { ?s :p ?o } OFFSET 1", Query("ask", Select(P, (), offset=1))),
        ("DESCRIBE :a ?s WHERE { ?s :p ?o }", Query("describe", Select(P, ("s",)), ("s",), described=(term("a"), S))),
        ("DESCRIBE * { ?s :p ?o }", Query("describe", Select(P, ("s", "o")), ("s", "o"), described=(S, V))),
        ("DESCRIBE :a", Query("describe", Select(Basic(), ()), described=(term("a"),))),
        ("SELECT DISTINCT ?s { ?s :p ?o }", Query("select", Select(P, ("s",), distinct=True), ("s",))),
        ("SELECT REDUCED ?s { ?s :p ?o }", Query("select", Select(P, ("s",), reduced=True), ("s",))),
        ("CONSTRUCT WHERE { ?s :p ?o }", Query("construct", Select(P, ("s", "o")), ("s", "o"), P.patterns)),
        (
            "CONSTRUCT { _:b :q ?o } { ?s :p ?o } ORDER BY ?s LIMIT 1",
            Query(
                "construct",
                Select(P, ("o",), order=(Order(S),), limit=1),
                ("o",),
                (Pattern(Var("_:b"), term("q"), V),),
            ),
        ),
        (
            "ASK FROM :a FROM NAMED :b FROM <c:d> {}",
            Query("ask", Basic(), dataset=Dataset((f"<{E}a>", "<c:d>"), (f"<{E}b>",))),
        ),
    ],
)
def test_forms(text: str, whole: Query) -> None:
    assert query(text) == whole


@pytest.mark.parametrize(
    ("text", "applied"),
    [
        ("URI(?x)", Apply("iri", (X,))),
        ("IF(?x, ?y, 1)", Apply("if", (X, Y, number(1)))),
        ("COALESCE()", Apply("coalesce", ())),
        ("BNODE()", Apply("bnode", ())),
        ("Now()", Apply("now", ())),
        ("replace(?x, ?y, ?o, ?s)", Apply("replace", (X, Y, V, S))),
        (f"<{XSD}integer>(?x)", Apply(f"<{XSD}integer>", (X,))),
        ("?x<<urn:x:y>", Apply("<", (X, Const("<urn:x:y>")))),
        ("?x-1*-?y", Apply("-", (X, Apply("*", (number(1), Apply("-", (Y,))))))),
        ("EXISTS {} && true", Apply("&&", (Exists(Basic()), Const(f'"true"^^<{XSD}boolean>')))),
    ],
)
def test_expressions(text: str, applied: Apply) -> None:
    assert where(f"FILTER({text})") == Filter(Basic(), (applied,))


def test_the_base_is_an_argument_of_iri() -> None:
    found = parse_query("ASK { FILTER(IRI('a')) }", E).where
    assert found == Filter(Basic(), (Apply("iri", (Const('"a"'), Const(f"<{E}>"))),))


def test_the_base_of_the_caller_is_what_a_query_without_one_is_relative_to() -> None:
    assert parse_query("DESCRIBE <a>", E).described == (term("a"),)
    assert parse_query("BASE <b/> DESCRIBE <a>", E).described == (term("b/a"),)


def test_codepoint_escapes_stand_anywhere() -> None:
    assert where(r"\u003Fs \u003Ap ?\U0000006F") == P
    found = where(r"?s :p '\u0027\u005Cn\\u0041'")
    assert found == Basic((Pattern(S, term("p"), Const(literal("'\\n\\u0041"))),))


def test_many_branches_are_not_deep() -> None:
    found = where(" UNION ".join(f"{{ VALUES ?x {{ {number} }} }}" for number in range(4_000)))
    depth = 0
    while isinstance(found, Union):
        found, depth = found.left, depth + 1
    assert depth == 12


def test_a_query_is_parsed_once() -> None:
    assert parse_query("ASK {}") is parse_query("ASK {}")
