"""Policies: what their rules mean for somebody, and where a document is wrong."""

from __future__ import annotations

import pytest

from triplewire.model.errors import BadRequest, BodyTooLarge
from triplewire.model.terms import RDF_TYPE
from triplewire.security.policy import HEADER_PREDICATES, parse_policy, publish_permit_of, visibility_of
from triplewire.security.principals import EVERYONE, Principal, Verb
from triplewire.security.visibility import NONE_VISIBLE, PatternSet, Visibility
from triplewire.sparql.algebra import HEADER_PREDICATES as QUERY_PREDICATES

WARD = """
[default]
see = { streams = "deny", graphs = "allow", classes = "allow", predicates = "allow" }
publish = "allow"

[prefixes]
care = "https://care.example/ns#"

[[see]]
name = "wards"
who = ["role:nurse", "role:doctor"]
allow.streams = ["ward-*"]

[[see]]
name = "diagnoses are for doctors"
who = ["*"]
except = ["role:doctor", "name:audit-*"]
deny.classes = ["care:Diagnosis"]
deny.predicates = ["care:insurance", "<https://other.example/>*"]

[[see]]
name = "audit"
who = ["name:audit-*"]
allow.streams = ["*"]
deny.graphs = ["<urn:private:>*"]

[[publish]]
name = "sensors measure"
who = ["role:sensor"]
deny.classes = ["care:Diagnosis"]
deny.predicates = ["care:says"]

[[publish]]
name = "no private ids"
who = ["*"]
deny.graphs = ["<urn:private:>*"]
deny.streams = ["archive"]
"""


def somebody(name: str, *roles: str, grants: tuple[str, ...] = ("*",)) -> Principal:
    return Principal.granted(name, grants, roles)


def seen(principal: Principal, text: str = WARD) -> Visibility | None:
    return visibility_of(principal, Verb.QUERY, parse_policy(text))


NOT_FOR_NURSES = PatternSet.of(["*"], ["<https://care.example/ns#insurance>", "<https://other.example/*"])
NO_DIAGNOSES = PatternSet.of(["*"], ["<https://care.example/ns#Diagnosis>"])


@pytest.mark.parametrize(
    ("principal", "visibility"),
    [
        (somebody("ann", "doctor"), Visibility(streams=PatternSet.of(["ward-*"]))),
        (
            somebody("bea", "nurse"),
            Visibility(PatternSet.of(["ward-*"]), classes=NO_DIAGNOSES, predicates=NOT_FOR_NURSES),
        ),
        (somebody("cem", "nurse", "doctor"), Visibility(streams=PatternSet.of(["ward-*"]))),
        (somebody("audit-1"), Visibility(graphs=PatternSet.of(["*"], ["<urn:private:*"]))),
        (somebody("eve"), NONE_VISIBLE),
        (somebody("ann", "doctor", grants=("query:ward-1", "consume")), Visibility(streams=PatternSet.of(["ward-1"]))),
        (somebody("ann", "doctor", grants=("query:home",)), NONE_VISIBLE),
        (somebody("ann", "doctor", grants=("consume",)), NONE_VISIBLE),
    ],
)
def test_what_somebody_sees(principal: Principal, visibility: Visibility) -> None:
    assert seen(principal) == visibility


def test_whoever_sees_everything_has_no_visibility() -> None:
    assert visibility_of(EVERYONE, Verb.QUERY, None) is None
    assert seen(EVERYONE, '[default]\nsee = "allow"\npublish = "deny"') is None
    assert visibility_of(somebody("a", grants=("query:x",)), Verb.QUERY, None) == Visibility(PatternSet.of(["x"]))


def test_one_visibility_is_made_once() -> None:
    policy = parse_policy(WARD)
    assert visibility_of(somebody("b", "nurse"), Verb.QUERY, policy) is visibility_of(
        somebody("b", "nurse"), Verb.QUERY, policy
    )


TYPED = f"<urn:x>\t{RDF_TYPE}\t<https://care.example/ns#Diagnosis>"
SAID = '<urn:x>\t<https://care.example/ns#says>\t"a"'


@pytest.mark.parametrize(
    ("principal", "stream", "graph", "text", "refusal"),
    [
        (somebody("s", "sensor"), "ward-1", "urn:1", '<urn:x>\t<urn:p>\t"1"', None),
        (somebody("s", "sensor"), "ward-1", "urn:1", f"{SAID}\n{TYPED}", "predicate <https://care.example/ns#says>"),
        (somebody("s", "sensor"), "ward-1", "urn:1", TYPED, "'sensors measure'"),
        (somebody("d", "doctor"), "ward-1", "urn:1", f"{SAID}\n{TYPED}", None),
        (somebody("d", "doctor"), "ward-1", "urn:private:1", SAID, "the id <urn:private:1> must not be published"),
        (somebody("d", "doctor"), "archive", "urn:1", SAID, "the stream archive must not be published: the rule 'no"),
    ],
)
def test_what_somebody_may_publish(
    principal: Principal, stream: str, graph: str, text: str, refusal: str | None
) -> None:
    permit = publish_permit_of(principal, parse_policy(WARD))
    assert permit is not None
    found = permit.refusal(stream, graph, text)
    assert found == refusal if refusal is None or found is None else refusal in found


def test_whoever_may_publish_everything_has_no_permit() -> None:
    assert publish_permit_of(EVERYONE, None) is None
    assert publish_permit_of(EVERYONE, parse_policy('[default]\nsee = "deny"\npublish = "allow"')) is None
    nothing = publish_permit_of(EVERYONE, parse_policy('[default]\nsee = "deny"\npublish = "deny"'))
    assert nothing is not None
    assert nothing.refusal("s", "urn:1", SAID) == "the stream s must not be published: no rule of the policy allows it"


HEAD = '[default]\nsee = "allow"\npublish = "deny"\n[prefixes]\nex = "urn:ex:"\n'
RULE = HEAD + '[[see]]\nname = "r"\nwho = ["*"]\n'
ALLOWS = HEAD + '[[publish]]\nname = "r"\nwho = ["role:a"]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("see = 1 2", "line 1, column 9: this is no TOML"),
        ("", "there must be a table [default]"),
        ('[default]\nsee = "allow"', "line 1: default: `publish` is missing"),
        ('[default]\nsee = "yes"\npublish = "allow"', 'line 2: default.see: it must be "allow" or "deny", not \'yes\''),
        ('[default]\nsee = {streams = "deny"}\npublish = "deny"', "line 2: default.see: `graphs` is missing"),
        (HEAD + "[other]", "line 6: other: this key is not known; known are default, prefixes, see, publish"),
        (HEAD + 'bad = "no iri"', "line 6: prefixes.bad: 'no iri' is no absolute IRI"),
        (HEAD + '"a b" = "urn:x:"', "line 6: prefixes.a b: 'a b' is no prefix"),
        (HEAD + "[see]", "`see` must be tables [[see]]"),
        (HEAD + '[[see]]\nwho = ["*"]', "line 6: rule 1 of [[see]]: `name` is missing"),
        (HEAD + '[[see]]\nname = "r"', "line 6: rule 1 of [[see]] 'r': `who` is missing"),
        (RULE, "line 6: rule 1 of [[see]] 'r': it allows and denies nothing"),
        (RULE + "deny.colours = []", "line 9: rule 1 of [[see]] 'r', deny.colours: this key is not known"),
        (RULE + "deny.streams = []", "line 9: rule 1 of [[see]] 'r', deny.streams: it must be a list of texts"),
        (RULE + 'deny.streams = ["a b"]', "'a b' is no pattern of streams"),
        (RULE + 'deny.streams = ["a", "a"]', "'a' is there twice"),
        (RULE + 'deny.classes = ["C"]', "'C' is no IRI: write <https://example.org/a>"),
        (RULE + 'deny.classes = ["no:C"]', "the prefix of 'no:C' is not in [prefixes]; known are ex"),
        (RULE + 'deny.classes = ["<a b>"]', "deny.classes: 'a b' is no absolute IRI"),
        (RULE + 'deny.classes = ["ex:a b"]', "deny.classes: 'urn:ex:a b' is no absolute IRI"),
        (RULE + 'deny.predicates = ["<https://triplewire.dev/ns#source>"]', "is of an event's headers"),
        (RULE + 'deny.predicates = ["<https://triplewire.dev/ns#>*"]', "is of an event's headers"),
        (RULE + 'allow.streams = ["a"]', "allow.streams: 'a' changes nothing: streams are allowed by default"),
        (RULE + 'deny.streams = ["a*", "ab"]', "deny.streams: 'ab' says nothing beside 'a*'"),
        (RULE.replace('"*"', '"nurse"') + 'deny.streams = ["a"]', "who: 'nurse' chooses nobody: write role:nurse"),
        (RULE + 'except = ["*"]\ndeny.streams = ["a"]', "except: it leaves out all whom '*' in `who` chooses"),
        (
            ALLOWS + 'except = ["role:a*"]\nallow.streams = ["a"]',
            "rule 1 of [[publish]] 'r', except: it leaves out all whom 'role:a'",
        ),
        (
            ALLOWS + 'allow.streams = ["ab"]\ndeny.streams = ["a*"]',
            "rule 1 of [[publish]] 'r', allow.streams: 'ab' is never allowed: this rule denies 'a*' to the same",
        ),
        (
            ALLOWS + 'allow.classes = ["ex:C"]\n[[publish]]\nname = "t"\nwho = ["role:*"]\ndeny.classes = ["ex:*"]',
            "allow.classes: 'ex:C' is never allowed: the rule 't' denies 'ex:*' to the same",
        ),
        (
            RULE + 'deny.streams = ["a"]\n[[see]]\nname = "r"\nwho = ["*"]\ndeny.streams = ["b"]',
            "line 11: rule 2 of [[see]] 'r', name: another rule has this name",
        ),
    ],
)
def test_a_document_that_is_wrong_is_told_where(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_policy(text)
    assert message in str(caught.value)


def test_a_deny_for_some_leaves_what_is_allowed_to_others() -> None:
    parse_policy(ALLOWS + 'allow.streams = ["a"]\n[[publish]]\nname = "t"\nwho = ["role:b"]\ndeny.streams = ["a"]')


def test_a_document_has_a_limit() -> None:
    with pytest.raises(BodyTooLarge):
        parse_policy("#" * 300_000)


def test_the_headers_that_no_rule_speaks_of_are_those_that_queries_know() -> None:
    assert set(HEADER_PREDICATES) == set(QUERY_PREDICATES)
