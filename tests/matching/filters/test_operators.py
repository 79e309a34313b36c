"""Operators: the worked examples of knowledge-based networking, for each of them and in both directions."""

from __future__ import annotations

import pytest

from tests.matching.filters.worlds import EX, World, constraint, event, holds, loaded

Case = tuple[str, object, str, bool]
"""Operator, value of the filter, values of the event, and whether it holds."""

CONFERENCES = """
ex:Camera_Ready_event rdfs:subClassOf ex:Administrative_event . ex:Administrative_event rdfs:subClassOf ex:Event .
ex:Paper rdfs:subClassOf ex:Contribution . ex:Short_paper rdfs:subClassOf ex:Paper .
ex:Tutorial owl:equivalentClass ex:Lesson . ex:Tutorial rdfs:subClassOf ex:Event .
ex:Chair_PC rdfs:subClassOf ex:Person . ex:Administrator rdfs:subClassOf ex:Organization .
ex:Dublin a ex:City . ex:Paper_17 a ex:Paper . ex:Autonomic_Actions a ex:Topic . ex:TCD a ex:Organization .
ex:Jones_Dominic a ex:Person ; ex:livesIn ex:Dublin . ex:livesIn rdfs:subPropertyOf ex:hasCity .
ex:hasCity rdfs:domain ex:Person ; rdfs:range ex:City . ex:Lewis_Dave ex:hasCity ex:Carlow .
ex:hasTown owl:equivalentProperty ex:hasCity .
"""
CASES: list[Case] = [
    ("@>", "ex:Administrative_event", "ex:Camera_Ready_event", True),
    ("@>", "ex:Contribution", "ex:Paper", True),
    ("@>", "ex:Contribution", "ex:Short_paper", True),
    ("@>", "ex:Paper", "ex:Contribution", False),
    ("@>", "ex:Contribution", "ex:Contribution", True),
    ("@>", "ex:Lesson", "ex:Tutorial", True),
    ("@>", "ex:Event", "ex:Lesson", True),
    ("@>", "ex:hasCity", "ex:livesIn", True),
    ("@>", "ex:hasTown", "ex:livesIn", True),
    ("@>", "ex:livesIn", "ex:hasCity", False),
    ("@>", "ex:Unheard_of", "ex:Unheard_of", True),
    ("@>", "ex:Unheard_of", "ex:Paper", False),
    ("@<", "ex:Paper", "ex:Contribution", True),
    ("@<", "ex:Contribution", "ex:Paper", False),
    ("@<", "ex:Paper", "ex:Paper", True),
    ("@<", "ex:livesIn", "ex:hasCity", True),
    ("@~", "ex:Lesson", "ex:Tutorial", True),
    ("@~", "ex:Tutorial", "ex:Lesson", True),
    ("@~", "ex:Lesson", "ex:Lesson", True),
    ("@~", "ex:Lesson", "ex:Organization", False),
    ("@~", "ex:Event", "ex:Tutorial", False),
    ("@~", "ex:hasCity", "ex:hasTown", True),
    ("@!~", "ex:Lesson", "ex:Organization", True),
    ("@!~", "ex:Lesson", "ex:Tutorial", False),
    ("@!~", "ex:Lesson", "ex:Lesson", False),
    ("@!~", "ex:Event", "ex:Tutorial", True),
    ("@=", "ex:City", "ex:Dublin", True),
    ("@=", "ex:Paper", "ex:Paper_17", True),
    ("@=", "ex:Contribution", "ex:Paper_17", True),
    ("@=", "ex:City", "ex:Carlow", True),
    ("@=", "ex:Person", "ex:Lewis_Dave", True),
    ("@=", "ex:City", "ex:Paper_17", False),
    ("@=", "ex:City", "ex:City", False),
    ("@!=", "ex:Organization", "ex:Autonomic_Actions", True),
    ("@!=", "ex:Organization", "ex:TCD", False),
    ("@!=", "ex:Contribution", "ex:Paper_17", False),
    ("@!=", "ex:Organization", "ex:Unheard_of", True),
    ("@*", ["ex:hasCity", "ex:Dublin"], "ex:Jones_Dominic", True),
    ("@*", ["ex:hasTown", "ex:Dublin"], "ex:Jones_Dominic", True),
    ("@*", ["ex:livesIn", "ex:Dublin"], "ex:Jones_Dominic", True),
    ("@*", ["ex:livesIn", "ex:Carlow"], "ex:Lewis_Dave", False),
    ("@*", ["ex:hasCity", "ex:Carlow"], "ex:Jones_Dominic", False),
]
STRICT: list[Case] = [
    ("@>", "ex:Contribution", "ex:Paper", True),
    ("@>", "ex:Contribution", "ex:Contribution", False),
    ("@>", "ex:Lesson", "ex:Tutorial", False),
    ("@>", "ex:Event", "ex:Lesson", True),
    ("@<", "ex:Paper", "ex:Contribution", True),
    ("@<", "ex:Paper", "ex:Paper", False),
    ("@<", "ex:Tutorial", "ex:Lesson", False),
]
WORDS = {
    "@>": "more_specific",
    "@<": "less_specific",
    "@~": "equivalent",
    "@!~": "not_equivalent",
    "@=": "is_a",
    "@!=": "is_not_a",
    "@*": "has_property",
}
BAGS: list[Case] = [
    ("#=/@<", ["ex:Chair_PC", "ex:Administrator", "ex:Administrative_event"],
     "ex:Organization, ex:Person, ex:Event", True),
    ("#>/@<", ["ex:Chair_PC", "ex:Administrative_event"], "ex:Organization, ex:Person, ex:Event", True),
    ("#</@<", ["ex:Chair_PC", "ex:Administrator", "ex:Administrative_event"], "ex:Organization, ex:Person", True),
    ("#=/@<", ["ex:Chair_PC", "ex:Administrative_event"], "ex:Organization, ex:Person, ex:Event", False),
    ("#>/@<", ["ex:Chair_PC", "ex:Administrator", "ex:Administrative_event"], "ex:Organization, ex:Person", False),
    ("#</@<", ["ex:Chair_PC", "ex:Administrative_event"], "ex:Organization, ex:Person, ex:Event", False),
    ("#=/less_specific", ["ex:Chair_PC", "ex:Administrator"], "ex:Organization, ex:Person", True),
    ("#=/<", [2, 3, 4], "1, 2, 3", True),
    ("#=/<", [2, 3, 3], "1, 2, 3", False),
    ("#=", [2, 1, 3], "1, 2, 3", True),
    ("#=", [1, 1, 2, 3], "1, 2, 3", False),
    ("#=", [1, 1, 2, 3], "(3 1 2 1)", True),
    ("#=", [1, 2, 3], "(3 1 2 1)", False),
    ("#>", [1, 1], "(3 1 2 1)", True),
    ("#>", [1, 1, 1], "(3 1 2 1)", False),
    ("#<", [1, 1, 1, 2, 3], "(3 1 2 1)", True),
    ("#<", [1, 2, 3, 4], "(3 1 2 1)", False),
    ("#=", [1, 1, 2], "1, (1 2)", True),
    ("#=", [], "()", True),
    ("#<", [], "()", True),
    ("#>", [], "()", True),
    ("#>", [], "1, 2", True),
    ("#=", [], "1", False),
    ("#<", [], "1", False),
    ("#<", [1], "()", True),
    ("#>", [1], "()", False),
    ("#>/*", ["a", "b"], '"ab", "a"', True),
    ("#>/*", ["a", "b"], '"ab", "c"', False),
    ("#=/@=", ["ex:City", "ex:Contribution"], "ex:Paper_17, ex:Dublin", True),
    ("#>/@*", [["ex:hasCity", "ex:Carlow"], ["ex:hasCity", "ex:Dublin"]], "ex:Jones_Dominic, ex:Lewis_Dave", True),
    ("#>/@*", [["ex:hasCity", "ex:Dublin"], ["ex:hasCity", "ex:Dublin"]], "ex:Jones_Dominic, ex:Lewis_Dave", False),
]  # fmt: skip
CONTENT: list[Case] = [
    ("=", "jonesdh", '"jonesdh"', True),
    ("=", 5, "5.0", True),
    ("=", 5, '"5"', False),
    ("=", {"@id": "ex:a"}, "ex:a", True),
    ("=", "http://example.org/a", "ex:a", False),
    ("=", True, "true", True),
    ("=", {"@value": "chaud", "@language": "fr"}, '"chaud"@fr', True),
    ("=", {"@value": "chaud", "@language": "fr"}, '"chaud"', False),
    ("!=", 5, "6", True),
    ("!=", 5, "5.0", False),
    ("<", 5, "4.9", True),
    ("<", 5, "5", False),
    ("<", 5, '"4"', False),
    ("<=", 5, "5", True),
    (">", 590, "500", False),
    (">", 590, "591.5e0", True),
    (">=", 5, "5", True),
    (">", {"@value": "2026-01-01T00:00:00Z", "@type": "http://www.w3.org/2001/XMLSchema#dateTime"},
     '"2026-01-01T01:00:00Z"^^xsd:dateTime', True),
    ("<", "b", '"a"', True),
    (">*", "jon", '"jonesdh"', True),
    (">*", "dh", '"jonesdh"', False),
    ("*<", "dh", '"jonesdh"', True),
    ("*<", "jon", '"jonesdh"', False),
    ("*", "nes", '"jonesdh"', True),
    ("*", "nes", '"jonesdh"@en', True),
    ("*", "x", '"jonesdh"', False),
    ("*", "5", "55", False),
]  # fmt: skip


def verdicts(cases: list[Case], **others: object) -> dict[str, bool]:
    """What is said of each case; all of them are looked at together."""
    world = World([event(f"ex:e ex:about {published} .") for _, _, published, _ in cases], [loaded(CONFERENCES)])
    found = world.matches([{"filter": [constraint("ex:about", op, value, **others)]} for op, value, _, _ in cases])
    return {_said(case): (at, at) in found for at, case in enumerate(cases)}


def wanted(cases: list[Case]) -> dict[str, bool]:
    return {_said(case): case[3] for case in cases}


def _said(case: Case) -> str:
    return f"{case[0]} {case[1]} of {case[2]}"


@pytest.mark.parametrize("cases", [CASES, BAGS, CONTENT], ids=["ontological", "bags", "content"])
def test_the_examples_of_operators(cases: list[Case]) -> None:
    assert verdicts(cases) == wanted(cases)


def test_words_mean_the_same_as_symbols() -> None:
    cases = [(WORDS[op], *rest) for op, *rest in CASES]
    assert verdicts(cases) == wanted(cases)  # type: ignore[arg-type]


def test_strict_variants() -> None:
    assert verdicts(STRICT, strict=True) == wanted(STRICT)


def test_no_literal_is_in_a_relation_with_a_name_nor_out_of_it() -> None:
    literals = ["5", '"Paper"', f'"{EX}Paper"', '"ill"^^xsd:integer']
    cases: list[Case] = [
        (op, "ex:Paper", each, False) for op in ("@>", "@<", "@~", "@!~", "@=", "@!=") for each in literals
    ]
    assert verdicts(cases) == wanted(cases)


def test_what_is_no_number_is_neither_less_nor_greater_nor_equal_nor_another() -> None:
    cases: list[Case] = [(op, 5, '"many"^^xsd:integer', False) for op in ("=", "!=", "<", "<=", ">", ">=")]
    assert verdicts(cases) == wanted(cases)


def test_an_attribute_that_is_not_there_satisfies_nothing() -> None:
    world = World([event("ex:e ex:other ex:Paper .")], [loaded(CONFERENCES)])
    ops = ("=", "!=", "@>", "@!~", "@!=", "#=", "#<", "#>")
    asked = [constraint("ex:about", op, [] if op.startswith("#") else "ex:Paper") for op in ops]
    assert world.matches([{"filter": [each]} for each in asked]) == set()


def test_the_example_of_mailboxes() -> None:
    world = World([event('ex:e ex:User_Name "jonesdh" ; ex:MailBoxSize 500 ; ex:ExtNumber 6099 .')])
    assert holds(world, constraint("ex:User_Name", "=", "jonesdh"))
    assert not holds(world, constraint("ex:User_Name", "=", "jonesdh"), constraint("ex:MailBoxSize", ">", 590))


def test_the_filter_of_the_search_experiment() -> None:
    filter_ = [
        constraint("ex:ontClass", "@>", "ex:Contribution"),
        constraint("ex:ontInstance", "@=", "ex:Paper"),
        constraint("ex:notificationNumber", "=", 7),
    ]
    world = World(
        [
            event(f"ex:e ex:ontClass ex:Paper ; ex:ontInstance {instance} ; ex:notificationNumber {number} .")
            for instance, number in [("ex:Paper_17", 7), ("ex:Paper_17", 8), ("ex:Dublin", 7)]
        ],
        [loaded(CONFERENCES)],
    )  # fmt: skip
    assert world.matches([{"filter": filter_}]) == {(0, 0)}


def test_constraints_may_hold_for_different_subjects_and_values() -> None:
    world = World([event("ex:a ex:p 1 . ex:b ex:p 9 .")])
    assert holds(world, constraint("ex:p", "<", 2), constraint("ex:p", ">", 8))
    assert not holds(world, constraint("ex:p", "<", 2), constraint("ex:p", ">", 9))


def test_one_of_several_filters_is_enough() -> None:
    world = World([event("ex:e ex:p 1 ."), event("ex:e ex:q 2 ."), event("ex:e ex:p 3 .")])
    either = {"filters": [[constraint("ex:p", "=", 1)], [constraint("ex:q", ">", 1)]]}
    assert world.matches([either]) == {(0, 0), (1, 0)}


def test_a_filter_without_constraints_takes_everything() -> None:
    assert World([event("ex:e ex:p 1 .")]).matches([{"filter": []}]) == {(0, 0)}


def test_a_value_counts_once_for_each_triple() -> None:
    """The same value of two subjects counts twice; the same triple, however often it is written, once."""
    text = event("ex:a ex:p 1 . ex:b ex:p 1 .").text
    twice = event("ex:a ex:p 1 .")
    doubled = type(twice)(twice.id, f"{twice.text}\n{twice.text}")
    world = World([type(twice)(twice.id, text), doubled])
    two, one = ({"filter": [constraint("ex:p", "#=", values)]} for values in ([1, 1], [1]))
    assert world.matches([two, one]) == {(0, 0), (1, 1)}


def test_a_list_that_bites_its_tail_comes_to_an_end() -> None:
    rdf = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    world = World([event(f"ex:e ex:p ex:l . ex:l {rdf}first> 1 ; {rdf}rest> ex:l .")])
    assert holds(world, constraint("ex:p", "#>", [1]))
