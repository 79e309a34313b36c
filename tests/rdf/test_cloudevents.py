"""CloudEvents as events and back: nothing is lost, either way. The other side is the `cloudevents` package."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings import http
from cloudevents.core.v1.event import CloudEvent as Theirs
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import Event, EventHeaders
from triplewire.model.errors import InputError
from triplewire.model.events import OpaquePayload, parse_payload
from triplewire.rdf import new_id
from triplewire.rdf.cloudevents import make_cloud_event, parse_binary, parse_structured, write_binary, write_structured
from triplewire.rdf.envelopes import CLOUD_EVENTS, decode_cloud_event
from triplewire.testing import event

TIME = 1_794_731_400_000_000


def sent(mode: str, given: Theirs) -> Event:
    """What their event becomes here."""
    if mode == "binary":
        message = http.to_binary_event(given)
        media_type = message.headers.get("content-type")
        (found,) = decode_cloud_event(parse_binary(message.headers, media_type, message.body), EventHeaders(), new_id)
    else:
        (found,) = decode_cloud_event(parse_structured(http.to_structured_event(given).body), EventHeaders(), new_id)
    return found


def heard(mode: str, given: Event) -> BaseCloudEvent:
    """What our event becomes there."""
    told = make_cloud_event(given, "home", twposition="0000000000000001")
    if mode == "binary":
        headers, body = write_binary(told)
        return http.from_binary_event(http.HTTPMessage(headers, body))
    return http.from_structured_event(
        http.HTTPMessage({"content-type": "application/cloudevents+json"}, write_structured(told))
    )


def own(found: BaseCloudEvent) -> dict[str, Any]:
    """Its attributes but those that an edge adds."""
    return {name: value for name, value in found.get_attributes().items() if name not in ("twstream", "twposition")}


MODES = pytest.mark.parametrize("mode", ["binary", "structured"])


@MODES
@settings(max_examples=30, deadline=None)
@given(
    id=st.sampled_from(["1", "a b", "urn:e:1", "https://example.org/e?x#y", "é", "urn:cloudevents:/s:1",
                        "urn:cloudevents:/s:urn%3Aa",
                        "%41", "a:b", "::"]),
    source=st.sampled_from(["/s", "urn:s", "https://example.org/s?a=b", "s", "//x:1/%20"]),
    subject=st.sampled_from([None, "x", "é ü", '"quoted" %'],),
    extension=st.sampled_from([{}, {"traceparent": "00-1-2-03"}, {"a1": "é", "sequence": "5"}]),
    data=st.sampled_from([
        ("text/csv", "a,b\n1,2\n"), ("application/json", {"a": [1, None, "é"]}),
        ("application/octet-stream", b"\xff\x00\n"),
        ("application/vnd.x+json", [1]), ("text/plain", "plain"), (None, None),
    ]),
)  # fmt: skip
def test_their_event_comes_back_as_it_was(
    mode: str, id: str, source: str, subject: str | None, extension: dict[str, str], data: tuple[str | None, Any]
) -> None:
    if mode == "binary" and isinstance(data[1], list):
        data = "application/vnd.x+json", {"a": 1}  # their writer writes lists as Python does
    media_type, content = data
    named = {"id": id, "source": source, "type": "com.example.t", "subject": subject, "datacontenttype": media_type}
    given = Theirs({**{name: value for name, value in named.items() if value is not None}, **extension}, content)
    found = sent(mode, given)
    for back in ("binary", "structured"):
        again = heard(back, Event(found.id, found.text, found.headers))
        wanted = {name: value for name, value in given.get_attributes().items() if name != "time"}
        assert {name: value for name, value in own(again).items() if name != "time"} == wanted
        assert (again.get_data() or None) == content or orjson.loads(again.get_data()) == content  # type: ignore[arg-type]


@MODES
@settings(max_examples=30, deadline=None)
@given(
    id=st.sampled_from(["urn:e:1", "urn:uuid:0190a5f0-0000-7000-8000-000000000000",
                        "urn:cloudevents:roof:x", "urn:cloudevents:roof:urn%3Aa", "http://a/é"]),
    source=st.sampled_from([None, "roof", "the roof", "https://example.org/s", "é"]),
    application=st.sampled_from([None, "app"]),
    extensions=st.dictionaries(
        st.sampled_from(["X-One", "one", "type", "ce-type", "ce-foo", "Ce-Subject", "twheaders", "a" * 30, "position"]),
        st.sampled_from(["1", "é ü", "a b"]),
    ),
    cargo=st.sampled_from([
        None, OpaquePayload("text/csv", b"a,b"), OpaquePayload("application/json", b'{"a": 1.50}'),
        OpaquePayload("a/b", b"\xff"),
    ]),
)  # fmt: skip
def test_our_event_comes_back_as_it_was(
    mode: str,
    id: str,
    source: str | None,
    application: str | None,
    extensions: dict[str, str],
    cargo: OpaquePayload | None,
) -> None:
    text = event(1).text if cargo is None else cargo.text(id)
    given = Event(id, text, EventHeaders(source, application, TIME, extensions=extensions))
    found = sent(mode, Theirs(heard(mode, given).get_attributes(), heard(mode, given).get_data()))
    assert found.id == id
    assert (found.headers.source, found.headers.application) == (source, application)
    assert (found.headers.time, found.headers.extensions) == (TIME, extensions)
    if cargo is None:
        assert found.text == text
        return
    again = parse_payload(found.id, found.text)
    assert again is not None
    assert again.media_type == cargo.media_type
    assert again.body == cargo.body or orjson.loads(again.body) == orjson.loads(cargo.body)


@MODES
@pytest.mark.parametrize("name", ["twstream", "twposition", "twsubscription", "twquery", "twkind"])
def test_a_publisher_cannot_set_the_attributes_of_a_delivery(mode: str, name: str) -> None:
    given = Theirs({"id": "1", "source": "/s", "type": "com.example.t", name: "forged"}, "x")
    found = sent(mode, given)
    assert found.headers.extensions == {"ce-type": "com.example.t"}
    assert heard(mode, found).get_attributes().get(name) != "forged"
    stored = Event(found.id, found.text, EventHeaders(extensions={name: "forged"}))
    assert heard(mode, stored).get_attributes().get(name) != "forged"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "`specversion`"),
        ({"specversion": "0.3", "id": "1", "source": "/", "type": "t"}, "version 1.0"),
        ({"specversion": "1.0", "id": "", "source": "/", "type": "t"}, "`id`"),
        ({"specversion": "1.0", "id": "1", "source": "/", "type": "t", "Bad-Name": "x"}, "'Bad-Name'"),
        ({"specversion": "1.0", "id": "1", "source": "/", "type": "t", "x": {"a": 1}}, "`x`"),
        ({"specversion": "1.0", "id": "1", "source": "/", "type": "t", "x": "a\r\nb"}, "printable"),
        ({"specversion": "1.0", "id": "1", "source": "/", "type": "t", "time": "soon"}, "ISO 8601"),
        ({"specversion": "1.0", "id": "1", "source": "/", "type": "t", "twheaders": "[]"}, "`twheaders`"),
        ({"specversion": "1.0", "id": "1", "source": "/", "type": "t", "data": 1, "data_base64": "AA=="}, "not both"),
        ({"specversion": "1.0", "id": "1", "source": "/", "type": "t", "data_base64": "?"}, "not base64"),
        ({"specversion": "1.0", "id": "1", "source": "/", "type": "t", "datacontenttype": "a/b", "data": 1}, "string"),
        ({"specversion": "1.0", "id": "1", "source": "/", "type": "t", "datacontenttype": "nonsense"}, "media type"),
        ({"specversion": "1.0", "id": "x" * 2000, "source": "/", "type": "t"}, "longer"),
        ({"specversion": "1.0", "id": "1", "source": "/", "type": "t", **{f"x{n}": "1" for n in range(40)}}, "limit"),
        ({"specversion": "1.0", "id": "1", "source": "/", "type": "t", "datacontenttype": "text/turtle", "data": "<"},
         "Turtle"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(said: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        decode_cloud_event(parse_structured(orjson.dumps(said)), EventHeaders(), new_id)


@pytest.mark.parametrize("body", [b"{", b"{}", b"1"])
def test_a_batch_is_an_array(body: bytes) -> None:
    cutter = CLOUD_EVENTS.cutter()
    assert list(cutter.feed(body)) == []
    with pytest.raises(InputError, match="batch"):
        list(cutter.end())


def test_what_an_edge_says_of_itself_is_no_event() -> None:
    notice = {"specversion": "1.0", "id": "1", "source": "/", "type": "dev.triplewire.gap", "data": {}}
    assert decode_cloud_event(parse_structured(orjson.dumps(notice)), EventHeaders(), new_id) == []
