"""Files that declare a relay: what they mean, and where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplewire.config.settings import TOKEN
from triplewire.model.clock import ManualClock
from triplewire.model.errors import BadRequest
from triplewire.network.declaration import Enrichment, RelayRoute, StreamAddress, parse_declaration
from triplewire.network.relay import Relay, make_enrichers

FILE = Path("north.toml")
HERE = "http://localhost:8080"


def routes(text: str) -> list[RelayRoute]:
    return list(parse_declaration(text, FILE, HERE).routes)


def test_a_mirror_keeps_its_name() -> None:
    declared = parse_declaration('[[relay]]\nfrom = "http://origin:8080/streams/weather"', FILE, HERE + "/")
    assert (declared.name, declared.positions, declared.address) == ("north", Path("north.positions"), None)
    assert declared.routes == (
        RelayRoute(StreamAddress("http://origin:8080", "weather"), StreamAddress(HERE, "weather")),
    )
    assert declared.routes[0].complete


def test_what_a_file_may_say() -> None:
    declared = parse_declaration(
        """
        name = "n"
        to = "https://below/base/"
        address = "http://public:80"
        positions = "kept/here"
        [[relay]]
        from = ["http://a/streams/x", "http://b/streams/y"]
        stream = "both"
        to = "http://other"
        after = "now"
        source = ["roof", "cellar"]
        [[relay]]
        from = "http://a/streams/x"
        application = "app"
        [relay.split]
        hot = { ask = "ASK { ?s ?p 1 }" }
        air = { vocabulary = "urn:air:" }
        [relay.enrich.annotation]
        turtle = "<> a <urn:C> ."
        """,
        FILE,
        HERE,
    )
    assert (declared.name, declared.address, declared.positions) == ("n", "http://public:80", Path("kept/here"))
    picked = (("source", "roof"), ("source", "cellar"))
    added = (Enrichment("annotation", {"turtle": "<> a <urn:C> ."}),)
    x, y, below = StreamAddress("http://a", "x"), StreamAddress("http://b", "y"), "https://below/base"
    assert list(declared.routes) == [
        RelayRoute(x, StreamAddress("http://other", "both"), picked, (), "now"),
        RelayRoute(y, StreamAddress("http://other", "both"), picked, (), "now"),
        RelayRoute(x, StreamAddress(below, "hot"), (("application", "app"), ("ask", "ASK { ?s ?p 1 }")), added),
        RelayRoute(x, StreamAddress(below, "air"), (("application", "app"), ("vocabulary", "urn:air:")), added),
    ]
    assert len({each.key for each in declared.routes}) == 4
    assert not any(each.complete for each in declared.routes)
    assert len(make_enrichers(declared)) == 4


MIRROR = '[[relay]]\nfrom = "http://origin/streams/weather"\n'


def test_a_filter_of_a_deployment_takes_what_the_file_says() -> None:
    (route,) = routes(MIRROR + "filter = { name = 'changed', property = 'urn:p' }")
    assert route.filters == (("filter", "changed"), ("filter.property", "urn:p"))
    (route,) = routes(MIRROR + "filter = 'changed'")
    assert route.filters == (("filter", "changed"),)


WRONG = [
    ("", None, "at least one table"),
    ("relay = 1", 1, "at least one table"),
    ("[[relay]\n", 1, "this is no TOML"),
    ("name = 'a'\nname = 'b'", 2, "this is no TOML"),
    (MIRROR + "form = 1", 3, "`form` is unknown here; known are from, to"),
    (MIRROR + MIRROR + "form = 1", 5, "`form` is unknown"),
    ("unknown = 1\n" + MIRROR, 1, "`unknown` is unknown here"),
    ("name = 1\n" + MIRROR, 1, "`name` must be a string"),
    ("[[relay]]\nstream = 'x'", 1, "`from` is missing"),
    ("[[relay]]\n\n# here\nfrom = 'weather'", 4, "not the address of a stream"),
    ("[[relay]]\nfrom = 'ftp://origin/streams/weather'", 2, "not the address of an edge"),
    ("[[relay]]\nfrom = 'http://origin:port/streams/weather'", 2, "not the address of an edge"),
    ("[[relay]]\nfrom = 'http://origin/streams/a b'", 2, "not a valid name of a stream"),
    ("[[relay]]\nfrom = []", 2, "empty list"),
    ("[[relay]]\nfrom = ['http://a/streams/x', 'http://b/streams/y']", 2, "name the target with `stream`"),
    (MIRROR + "to = 'localhost:8080'", 3, "not the address of an edge"),
    (MIRROR + "stream = ''", 3, "`stream` must be a string"),
    (MIRROR + "filter = { property = 'urn:p' }", 3, "`filter` needs a `name`"),
    (MIRROR + "source = [1]", 3, "`source` must be a string"),
    (MIRROR + "enrich = 'x'", 3, "`enrich` must be a table"),
    (MIRROR + "enrich.annotation = 1", 3, "`annotation` must be a table"),
    (MIRROR + "split = 1", 3, "`split` must be a table"),
    (MIRROR + "stream = 'x'\nsplit = {}", 3, "exclude each other"),
    (MIRROR + "split.hot = { source = 'a' }\nsplit.cold = { sauce = 'a' }", 4, "`sauce` is unknown here"),
    (MIRROR + "[relay.split.'no name']\nsource = 'a'", 3, "not a valid name of a stream"),
    (MIRROR + MIRROR, 3, "is declared twice"),
    ("[[relay]]\nfrom = 'http://localhost:8080/streams/x'", 1, "relayed into itself"),
]


@pytest.mark.parametrize(("text", "line", "told"), WRONG)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int | None, told: str) -> None:
    with pytest.raises(BadRequest, match=told) as raised:
        parse_declaration(text, FILE, HERE)
    assert (raised.value.place.line if raised.value.place else None) == line
    if line is not None:
        assert f"line {line}" in str(raised.value)
        assert raised.value.excerpt.split("\n")[0] == text.splitlines()[line - 1]


@pytest.mark.parametrize(
    ("enrichment", "told"),
    [
        ("nobody = {}", "known are annotation; entry points"),
        ("annotation = {}", "annotation takes `turtle`"),
        ("annotation.turtle = 'no turtle'", "refuses its options"),
        ("annotation = { turtle = '<> <urn:p> 1 .', other = 1 }", "and nothing else"),
    ],
)
def test_an_enricher_that_cannot_be_is_told_before_the_start(enrichment: str, told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        make_enrichers(parse_declaration(f"{MIRROR}enrich.{enrichment}", FILE, HERE))


def test_each_edge_has_a_token_of_its_own_in_a_file(tmp_path: Path) -> None:
    text = '[tokens]\n"http://a:8080/" = "keys/a.token"\n[[relay]]\nfrom = "http://a:8080/streams/x"'
    declared = parse_declaration(text, tmp_path / "north.toml", HERE)
    assert declared.tokens == {"http://a:8080": tmp_path / "keys" / "a.token"}


@pytest.mark.parametrize(
    ("tokens", "told"), [('"a" = "f"', "not the address of an edge"), ('"http://a" = 1', "a string")]
)
def test_tokens_are_files_of_edges(tokens: str, told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        parse_declaration(f'[tokens]\n{tokens}\n[[relay]]\nfrom = "http://a/streams/x"', FILE, HERE)


def test_a_token_is_shown_to_the_edge_that_it_is_for_and_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, "mine")
    (tmp_path / "a.token").write_text("theirs\n")
    text = '[tokens]\n"http://a" = "a.token"\n[[relay]]\nfrom = ["http://a/streams/x", "http://b/streams/x"]'
    relay = Relay(parse_declaration(text, tmp_path / "north.toml", HERE), ManualClock())
    shown = [relay._make_client(edge)._credentials.token for edge in (HERE, "http://a", "http://b")]
    assert shown == ["mine", "theirs", None]
