"""Codecs: bodies of events, in every way in which they come in. Each target takes bytes or raises an InputError."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from triplewire.model import EventHeaders
from triplewire.model.errors import InputError
from triplewire.rdf import JSON_LD, SYNTAXES, TRIG, Syntax, decode, encode
from triplewire.rdf.cloudevents import parse_binary
from triplewire.rdf.envelopes import ENVELOPES, STREAMING_ENVELOPES, Envelope, decode_cloud_event

Target = Callable[[bytes], object]

_EXAMPLE = decode(
    b"""<x:g> { <x:s> <x:p> "x\\n\\"", 1.5, "y"@en, [ <x:q> (1 2) ] } <x:h> { <x:s> a <x:C> ; <x:p> <x:o> }""", TRIG
)


def _document(syntax: Syntax, data: bytes) -> None:
    """What was read can be written, and read again."""
    events = decode(data, syntax)
    assert len(decode(encode(events, TRIG), TRIG)) == len(events)


def _items(wrapping: Envelope, data: bytes) -> None:
    """The first byte says where the rest is torn in two."""
    cutter, where = wrapping.cutter(), data[0] if data else 0
    cuts = [*cutter.feed(data[1 : where + 1]), *cutter.feed(data[where + 1 :]), *cutter.end()]
    for cut in cuts:
        try:
            wrapping.read(cut.data, EventHeaders(), lambda: "urn:uuid:0")
        except InputError:
            continue


def _binary(data: bytes) -> None:
    """A CloudEvent whose attributes are headers: those stand in lines before an empty one."""
    head, _, body = data.partition(b"\n\n")
    pairs = (line.partition(b":") for line in head.split(b"\n"))
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, _, value in pairs}
    decode_cloud_event(parse_binary(headers, headers.get("content-type"), body), EventHeaders(), lambda: "urn:uuid:0")


def _name(text: str) -> str:
    return text.lower().replace(" ", "-").replace("/", "-")


_WRAPPINGS = dict.fromkeys((*ENVELOPES, *STREAMING_ENVELOPES))

TARGETS: dict[str, Target] = {
    **{_name(syntax.name): partial(_document, syntax) for syntax in SYNTAXES},
    **{"items-" + _name(each.name): partial(_items, each) for each in _WRAPPINGS},
    "cloudevent-binary": _binary,
}
"""By their names."""

SEEDS: dict[str, tuple[bytes, ...]] = {
    **{_name(syntax.name): (encode(_EXAMPLE, syntax),) for syntax in SYNTAXES},
    "items-lines-of-json": (b"\x10" + encode(_EXAMPLE, JSON_LD), b'\x05{"body":"<x:s> <x:p> 1 .","event":"x:e"}\n'),
    "items-a-cloudevent": (b'\x10{"specversion":"1.0","id":"1","source":"/a","type":"t","data":{"@id":"x:s"}}',),
    "items-a-batch-of-cloudevents": (b'\x10[{"specversion":"1.0","id":"1","source":"/a","type":"t","data":1}]',),
    "items-ztreamy-items": (b"\x10Event-Id: x:e\nSyntax: text/turtle\nBody-Length: 15\n\n<x:s> <x:p> 1 .",),
    "cloudevent-binary": (
        b"ce-specversion:1.0\nce-id:1\nce-source:/a\nce-type:t\ncontent-type:text/turtle\n\n<x:s> a 1.",
    ),
}
"""Where each begins."""
