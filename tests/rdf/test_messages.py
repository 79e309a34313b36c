"""RDF Messages: the interoperability tests of the draft, and what may be done to a parser."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import Event, EventHeaders
from triplewire.model.errors import BadRequest, BodyTooLarge, InputError
from triplewire.rdf import N_QUADS, N_TRIPLES, TRIG, TURTLE, Syntax, new_id
from triplewire.rdf.envelopes import MESSAGES, find_envelope
from triplewire.rdf.messages import PROLOGUE_BYTES, declares_messages

EX = "http://example.org/"
VERSION = 'VERSION "1.2-messages"\n'
ALL = pytest.mark.parametrize("syntax", [TURTLE, TRIG, N_TRIPLES, N_QUADS], ids=lambda each: each.name)
WITH_STATEMENTS = pytest.mark.parametrize("syntax", [TURTLE, TRIG], ids=lambda each: each.name)


def triple(number: int) -> str:
    return f"<{EX}s{number}> <{EX}p> <{EX}o{number}> .\n"


def line(number: int) -> str:
    return f"<{EX}s{number}>\t<{EX}p>\t<{EX}o{number}>"


def read(text: str, syntax: Syntax, *cuts: int) -> list[list[Event] | InputError]:
    """The messages of a text that comes in pieces; None in the place of one that is refused."""
    wrapping, data, found = MESSAGES[syntax], text.encode(), list[list[Event] | InputError]()
    cutter, bounds = wrapping.cutter(), [0, *sorted(cuts), len(text.encode())]
    pieces = [data[start:end] for start, end in pairwise(bounds)]
    for cut in [each for piece in pieces for each in cutter.feed(piece)] + list(cutter.end()):
        try:
            found.append(wrapping.read(cut.data, EventHeaders(), new_id))
        except InputError as error:
            found.append(error)
    return found


def texts(found: list[list[Event] | InputError]) -> list[list[str] | None]:
    """What is no event is left out."""
    return [None if isinstance(each, InputError) else [one.text for one in each] for each in found if each != []]


@ALL
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (VERSION + triple(1), [[line(1)]]),
        (VERSION + triple(1) + "MESSAGE\n" + triple(2), [[line(1)], [line(2)]]),
        (VERSION + "MESSAGE\n" + triple(1), [[line(1)]]),
        (VERSION + triple(1) + "MESSAGE\nMESSAGE # nothing\n" + triple(2), [[line(1)], [line(2)]]),
        (VERSION + triple(1) + "MESSAGE\n", [[line(1)]]),
        (VERSION + triple(1) + "MESSAGE", [[line(1)]]),
        (VERSION + triple(1) + "# MESSAGE\n" + triple(2), [[line(1) + "\n" + line(2)]]),
        (VERSION + f'<{EX}s> <{EX}p> "a MESSAGE . \\"MESSAGE" .\n', [[f'<{EX}s>\t<{EX}p>\t"a MESSAGE . \\"MESSAGE"']]),
        (triple(1) + "MESSAGE\n<broken\nMESSAGE\n" + triple(2), [[line(1)], None, [line(2)]]),
        (VERSION.replace("1.2-", "1.1-") + triple(1) + "MESSAGE\n" + triple(2), [[line(1)], [line(2)]]),
    ],
)
def test_messages_are_told_apart(syntax: Syntax, text: str, wanted: list[list[str] | None]) -> None:
    assert texts(read(text, syntax)) == wanted


@WITH_STATEMENTS
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f'@version "1.2-messages" .\n@prefix ex: <{EX}> .\n\nex:s1 ex:p ex:o1 .\n@message .\nex:s2 ex:p ex:o2 .\n',
         [[line(1)], [line(2)]]),
        (f"{VERSION}PREFIX ex: <{EX}>\nex:s1 ex:p ex:o1 .\nmessage\n"
         "PREFIX ex: <urn:>\nex:s ex:p ex:o .\nMESSAGE\nex:a ex:b ex:c .",
         [[line(1)], ["<urn:s>\t<urn:p>\t<urn:o>"], ["<urn:a>\t<urn:b>\t<urn:c>"]]),
        (f"BASE <{EX}>\nPREFIX p: <p#> # <not:this>\n<s1> <p> <o1> .\n"
         "MESSAGE BASE <x/> <s> p:p <o> . MESSAGE <s> <p> <o> .",
         [[line(1)], [f"<{EX}x/s>\t<{EX}p#p>\t<{EX}x/o>"], [f"<{EX}x/s>\t<{EX}x/p>\t<{EX}x/o>"]]),
        (f"PREFIX ex: <{EX}> ex:a.message ex:p ex:message .\nMESSAGE\n{triple(1)}",
         [[f"<{EX}a.message>\t<{EX}p>\t<{EX}message>"], [line(1)]]),
        (f"{triple(1)}@message <{EX}invalid> .\n{triple(2)}MESSAGE\n{triple(3)}", [None, [line(3)]]),
        (f"<{EX}s> <{EX}p>\nMESSAGE\n{triple(1)}", [None, [line(1)]]),
        (f'<{EX}s> <{EX}p> """\nMESSAGE\n""" .\nMESSAGE\n{triple(1)}',
         [[f'<{EX}s>\t<{EX}p>\t"\\nMESSAGE\\n"'], [line(1)]]),
    ],
)  # fmt: skip
def test_directives_hold_on(syntax: Syntax, text: str, wanted: list[list[str] | None]) -> None:
    assert texts(read(text, syntax)) == wanted


def test_graphs_of_a_message_are_events_that_come_together() -> None:
    text = f"{VERSION}PREFIX ex: <{EX}>\nex:s1 ex:p ex:o1 .\n"
    text += "ex:g { ex:s2 ex:p ex:o2 . ex:s3 ex:p ex:o3 }\nMESSAGE\nex:s4 ex:p ex:o4 ."
    first, second = read(text, TRIG)
    assert not isinstance(first, InputError)
    assert [(each.text, each.id == f"{EX}g") for each in first] == [(line(1), False), (f"{line(2)}\n{line(3)}", True)]
    assert texts([second]) == [[line(4)]]


def test_a_delimiter_in_a_graph_spoils_its_message() -> None:
    text = f"{VERSION}<{EX}g> {{\n  {triple(1)}MESSAGE\n  {triple(2)}}}\nMESSAGE\n{triple(3)}"
    assert texts(read(text, TRIG)) == [None, [line(3)]]


@pytest.mark.parametrize("syntax", [TRIG, N_QUADS], ids=lambda each: each.name)
def test_triples_outside_that_say_headers_are_headers(syntax: Syntax) -> None:
    tw = "https://triplewire.dev/ns#"
    said = f'<{EX}g> <{tw}stream> "home" .\n<{EX}g> <{tw}source> "roof" .\n'
    event = f"<{EX}s1> <{EX}p> <{EX}o1> <{EX}g> .\n" if syntax == N_QUADS else f"<{EX}g> {{ {triple(1)} }}\n"
    ((found,),) = read(said + event + "MESSAGE\n", syntax)  # type: ignore[misc]
    assert (found.id, found.text, found.headers.source) == (f"{EX}g", line(1), "roof")


@ALL
def test_blank_nodes_are_those_of_their_message(syntax: Syntax) -> None:
    (first,), (second,) = read(f"{VERSION}_:b <{EX}p> 'x' .\nMESSAGE\n_:b <{EX}p> 'x' .\n".replace("'", '"'), syntax)  # type: ignore[misc]
    assert first.text.split("\t")[0] != second.text.split("\t")[0]


@ALL
@settings(max_examples=40, deadline=None)
@given(
    parts=st.lists(
        st.sampled_from(
            [triple(1), triple(2), "MESSAGE\n", "# a MESSAGE\n", f'<{EX}s> <{EX}p> "x\\n MESSAGE " .\n', "\n"]
        )
    ),
    cuts=st.lists(st.integers(0, 400), max_size=5),
)
def test_it_does_not_matter_how_it_comes(syntax: Syntax, parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    assert texts(read(text, syntax, *(min(each, len(text)) for each in cuts))) == texts(read(text, syntax))


@ALL
def test_places_are_those_of_the_message(syntax: Syntax) -> None:
    wrapping = MESSAGES[syntax]
    cutter = wrapping.cutter()
    text = f"{VERSION}{triple(1)}\nMESSAGE\n\n{triple(2)}# a comment\n{triple(3)}<broken\nMESSAGE\n"
    _, cut = [*cutter.feed(text.encode()), *cutter.end()]
    with pytest.raises(InputError) as caught:
        wrapping.read(cut.data, EventHeaders(), new_id)
    assert caught.value.place is not None
    assert cut.line + caught.value.place.line - 1 in (8, 9)  # at the line, or where the statement is not ended


def test_a_document_announces_itself() -> None:
    assert declares_messages(b'# c\n  version "1.1-messages"\n')
    assert declares_messages(b"@version '1.2-basic-messages' .")
    assert not declares_messages(b'VERSION "1.2"\n# 1.2-messages')
    assert find_envelope('text/turtle; charset=utf-8; version="1.2-messages"') is MESSAGES[TURTLE]
    assert find_envelope("text/turtle; version=1.2") is None


@pytest.mark.parametrize("text", ['VERSION "1.3-messages"\n', 'VERSION "1.2"\n'])
@ALL
def test_another_version_is_refused(syntax: Syntax, text: str) -> None:
    with pytest.raises(BadRequest, match="version"):
        read(text + triple(1), syntax)


def test_an_unknown_version_of_the_media_type_is_refused() -> None:
    with pytest.raises(BadRequest, match=r"1\.2-messages"):
        find_envelope("text/turtle; version=3-messages")


@WITH_STATEMENTS
def test_prefixes_cannot_make_a_short_body_long(syntax: Syntax) -> None:
    """The threat: prefixes are read again with each message, so that many small ones cost a lot."""
    prefix = f"PREFIX p: <urn:{'x' * (PROLOGUE_BYTES - 100)}>\n"
    with pytest.raises(BodyTooLarge):
        list(MESSAGES[syntax].cutter().feed((prefix + "MESSAGE\n" + "<a:> <a:> <a:> . MESSAGE\n" * 2_000).encode()))
    with pytest.raises(BodyTooLarge):
        read("".join(f"PREFIX p{n}: <urn:{'x' * 1000}> MESSAGE\n" for n in range(100)), syntax)
