"""Canonical N-Quads in compiled code: a body becomes the ids and texts of its events, without a parser.

Only a part of N-Quads is understood: a quad in a named graph on each line, written as the serializer of the RDF library
would write it, of web addresses, URNs and literals in ASCII without escapes. Anything else, right or wrong, is left to
the parser. So nothing of RDF is decided twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from triplewire.kernels.arrays import Bytes, Int32, Int64, UInt64
from triplewire.kernels.compiler import compiled, inlined

EVENT_LINES: Final = 256
"""Quads of an event up to which repeated ones are looked for here: each is compared with all before it."""

IRI_BYTES: Final = 1_000
"""Length of an IRI up to which none of the limits on IRIs and ids is near."""

_SPACE, _QUOTE, _NUMBER_SIGN, _DOT, _SLASH, _COLON = (np.uint8(ord(each)) for each in ' "#./:')
_LESS, _GREATER, _QUESTION, _BACKSLASH, _HAT, _AT = (np.uint8(ord(each)) for each in "<>?\\^@")
_TAB, _NEWLINE, _TILDE = np.uint8(9), np.uint8(10), np.uint8(126)

_HOST, _PATH, _DIGIT = np.uint8(1), np.uint8(2), np.uint8(4)


def _classes() -> Bytes:
    """The classes of each byte: whether it may stand in the host of a web address, in a path, in a port."""
    found = np.zeros(256, np.uint8)
    for byte in range(128):
        character = chr(byte)
        if character.isalnum():
            found[byte] = _HOST | _PATH | (_DIGIT if character.isdigit() else 0)
        elif character in "-.":
            found[byte] = _HOST | _PATH
        elif character in "_~!$&'()*+,;=:@/":
            found[byte] = _PATH
    return found


_CLASSES = _classes()
_HTTP, _HTTPS, _URN = (np.frombuffer(each, np.uint8) for each in (b"http://", b"https://", b"urn:"))
_STRING = np.frombuffer(b"http://www.w3.org/2001/XMLSchema#string", np.uint8)
_RDF = np.frombuffer(b"http://www.w3.org/1999/02/22-rdf-syntax-ns#", np.uint8)


@dataclass(frozen=True)
class EventTexts:
    """The ids of events, and their texts: a line `subject⇥predicate⇥object` for each quad."""

    ids: list[str]
    texts: pa.StringArray


def split_canonical(body: bytes) -> EventTexts | None:
    """Return the events of a body of canonical N-Quads, in order; None if the parser has to look at it."""
    if not body.endswith(b" .\n"):
        return None
    data, lines = np.frombuffer(body, np.uint8), body.count(b"\n")
    texts, offsets, names = np.empty(len(body), np.uint8), np.zeros(lines + 1, np.int32), np.zeros(2 * lines, np.int64)
    count = _split(data, _CLASSES, texts, offsets, names, np.zeros(EVENT_LINES, np.uint64))
    if count < 0:
        return None
    bounds = names[: 2 * count].tolist()
    ids = [body[start:end].decode() for start, end in zip(bounds[::2], bounds[1::2], strict=True)]
    if len(set(ids)) < count:
        return None
    buffers = [None, pa.py_buffer(offsets[: count + 1]), pa.py_buffer(texts[: offsets[count]])]
    return EventTexts(ids, pa.StringArray.from_buffers(count, *buffers[1:]))


@inlined
def _starts(data: Bytes, place: int, prefix: Bytes) -> bool:
    offset = 0
    while offset < len(prefix) and data[place + offset] == prefix[offset]:
        offset += 1
    return offset == len(prefix)


@compiled
def _end_of_iri(data: Bytes, classes: Bytes, start: int) -> int:
    """Return the place behind the IRI that starts here with `<`; -1 if there is none that is surely valid."""
    place = start + 1
    if data[start] != _LESS:
        return -1
    if _starts(data, place, _URN):
        place += len(_URN)
        if not classes[data[place]] & _HOST:
            return -1
    elif _starts(data, place, _HTTP) or _starts(data, place, _HTTPS):
        place += len(_HTTP) if data[place + 4] == _COLON else len(_HTTPS)
        while classes[data[place]] & _HOST:
            place += 1
        if data[place] == _COLON:
            place += 1
            while classes[data[place]] & _DIGIT:
                place += 1
        if data[place] not in (_SLASH, _NUMBER_SIGN, _QUESTION, _GREATER):
            return -1
    else:
        return -1
    while classes[data[place]] & _PATH:
        place += 1
    for sign in (_QUESTION, _NUMBER_SIGN):
        if data[place] == sign:
            place += 1
            while classes[data[place]] & _PATH or data[place] == _QUESTION:
                place += 1
    return place + 1 if data[place] == _GREATER and place - start <= IRI_BYTES else -1


@compiled
def _end_of_object(data: Bytes, classes: Bytes, start: int) -> int:
    """Return the place behind the IRI or literal that starts here; -1 if there is none that is surely canonical."""
    if data[start] != _QUOTE:
        return _end_of_iri(data, classes, start)
    place = start + 1
    while _SPACE <= data[place] <= _TILDE and data[place] != _QUOTE and data[place] != _BACKSLASH:
        place += 1
    if data[place] != _QUOTE:
        return -1
    place += 1
    if data[place] == _SPACE:
        return place
    if data[place] != _HAT or data[place + 1] != _HAT:
        return -1
    # Canonical text leaves out the type of strings, and strings in a language have another form.
    if _starts(data, place + 3, _STRING) or _starts(data, place + 3, _RDF):
        return -1
    return _end_of_iri(data, classes, place + 2)


@compiled
def _split(data: Bytes, classes: Bytes, texts: Bytes, offsets: Int32, names: Int64, seen: UInt64) -> int:
    """Write the texts of events with their offsets, and the bounds of their ids in the data; return the number of
    events, or -1. The data ends with a newline, at which every loop stops."""
    place, written, events, lines, graph, length = 0, 0, 0, 0, 0, 0
    while place < len(data):
        subject = _end_of_iri(data, classes, place)
        if subject < 0 or data[subject] != _SPACE:
            return -1
        predicate = _end_of_iri(data, classes, subject + 1)
        if predicate < 0 or data[predicate] != _SPACE:
            return -1
        object_ = _end_of_object(data, classes, predicate + 1)
        if object_ < 0 or data[object_] != _SPACE:
            return -1
        end = _end_of_iri(data, classes, object_ + 1)
        if end < 0 or data[end] != _SPACE or data[end + 1] != _DOT or data[end + 2] != _NEWLINE:
            return -1
        same = events > 0 and end - object_ - 1 == length
        if same:
            for offset in range(length):
                if data[object_ + 1 + offset] != data[graph + offset]:
                    same = False
                    break
        if not same:
            graph, length = object_ + 1, end - object_ - 1
            names[2 * events] = graph + 1
            names[2 * events + 1] = end - 1
            events, lines = events + 1, 0
        else:
            texts[written] = _NEWLINE
            written += 1
        if lines == EVENT_LINES:
            return -1
        line_hash = np.uint64(0xCBF29CE484222325)
        for at in range(place, object_):
            byte = data[at]
            if at in (subject, predicate):
                byte = _TAB
            texts[written] = byte
            written += 1
            line_hash = (line_hash ^ np.uint64(byte)) * np.uint64(0x100000001B3)
        for other in range(lines):
            if seen[other] == line_hash:
                return -1
        seen[lines] = line_hash
        lines += 1
        offsets[events] = written
        place = end + 3
    return events
