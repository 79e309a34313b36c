"""Topics: the addresses by which Mercure names streams, as patterns of streams.

`https://example.org/streams/home`, or `/streams/home`, is one; `…/streams/city-{id}` is all that begin so, and
`…/streams/{stream}` or `*` is all. What is another address, or a template of another form, names none.
"""

from __future__ import annotations

import re

from triplewire.access.grants import ALL

_TOPIC = re.compile(r"(?:https?://[^/?#]+)?/streams/(?P<name>[A-Za-z0-9._~-]*)(?P<any>\{[A-Za-z0-9_.]+\})?")


def pattern_of(topic: str) -> str | None:
    """The pattern of the streams that a topic, or a selector of topics, names; None where it names none."""
    if topic == ALL:
        return ALL
    found = _TOPIC.fullmatch(topic)
    if found is None or not (found["name"] or found["any"]):
        return None
    return found["name"] + (ALL if found["any"] else "")
