"""What `bench fanout` publishes: events of a chosen size that tell their number and the moment they were due.

Like real events they are alike and not the same: predicates and the beginnings of IRIs come again, sensors, values,
numbers, times and words do not. All but the time follows from the number.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

MARK = re.compile(rb"sent (\d+) at (\d+) ")
"""In a message of whatever format: the event's number, and when it was due in nanoseconds of the monotonic clock."""

_BASE = "http://a.example"
_SOSA = "http://www.w3.org/ns/sosa/"
_PROPERTIES = ("no2", "noise", "speed", "occupancy", "temperature", "humidity")
_WORDS = (
    "traffic",
    "bridge",
    "north",
    "lane",
    "closed",
    "rain",
    "heavy",
    "road",
    "works",
    "until",
    "evening",
    "slow",
    "wind",
    "station",
    "crowded",
    "platform",
    "moved",
    "market",
    "square",
    "quiet",
    "noise",
    "above",
    "limit",
    "school",
    "crossing",
    "sensor",
    "replaced",
    "battery",
    "low",
    "tram",
    "delayed",
    "ten",
    "minutes",
    "river",
    "level",
    "rising",
    "lights",
    "out",
    "parking",
    "full",
    "detour",
    "signed",
    "concert",
    "tonight",
    "gate",
    "open",
    "visitors",
    "many",
    "bicycles",
    "path",
    "icy",
    "clear",
    "sunny",
    "morning",
    "air",
    "quality",
    "good",
    "moderate",
    "poor",
    "alert",
    "ended",
    "crew",
    "on",
    "site",
    "expected",
    "normal",
    "soon",
    "thanks",
    "patience",
)


def observation(number: int, due: int, size: int = 500) -> bytes:
    """A sensor's observation of four quads, as N-Quads: `size` bytes, or as few as it takes. Words fill it up."""
    draw = random.Random(number)
    subject, graph = f"<{_BASE}/o/{number}>", f"<{_BASE}/e/{number}>"
    lines = (
        f"{subject} <{_SOSA}madeBySensor> <{_BASE}/sensor/{draw.randrange(2_000)}> {graph} .\n"
        f"{subject} <{_SOSA}observedProperty> <{_BASE}/property/{draw.choice(_PROPERTIES)}> {graph} .\n"
        f'{subject} <{_SOSA}hasSimpleResult> "{draw.uniform(0, 100):.1f}" {graph} .\n'
        f'{subject} <{_BASE}/note> "sent {number} at {due} '
    )
    end = f'" {graph} .\n'
    return (lines + _words(draw, size - len(lines) - len(end)) + end).encode()


def post(number: int, due: int, size: int = 881) -> bytes:
    """A post of a microblog like that of figure 2 in the paper on Ztreamy, whose posts have 881 bytes on average."""
    draw = random.Random(number)
    user = f"http://identi.example/user/{draw.randrange(20_000)}"
    head = (
        "@prefix dc: <http://purl.org/dc/elements/1.1/> .\n"
        "@prefix foaf: <http://xmlns.com/foaf/0.1/> .\n"
        "@prefix geo: <http://www.w3.org/2003/01/geo/wgs84_pos#> .\n"
        "@prefix ns: <http://identi.example/ns/> .\n"
        f"<http://identi.example/notice/{97_000_000 + number}>\n  dc:creator <{user}>;\n"
        f'  dc:date "2012-10-25T11:{draw.randrange(60):02}:{draw.randrange(60):02}+00:00";\n'
        f"  ns:conversation <http://identi.example/conversation/{draw.randrange(10**8)}>;\n"
        f'  ns:hashtag "{draw.choice(_WORDS)}{draw.randrange(100)}";\n'
        f"  ns:location [ a geo:Place; {_place(draw)} ] .\n"
        f"<{user}> foaf:based_near [ a geo:Place; {_place(draw)} ] .\n"
        f'<http://identi.example/notice/{97_000_000 + number}> ns:content "sent {number} at {due} '
    )
    end = '" .\n'
    wanted = size + draw.randrange(-100, 101)
    return (head + _words(draw, wanted - len(head) - len(end)) + end).encode()


def _place(draw: random.Random) -> str:
    return f'geo:lat "{draw.uniform(-90, 90):.3f}"; geo:long "{draw.uniform(-180, 180):.3f}"'


def _words(draw: random.Random, size: int) -> str:
    """So many characters of words; none if that is less than nothing."""
    words = ""
    while len(words) < size:
        words += draw.choice(_WORDS) + " "
    return words[: max(0, size)]


KINDS: Mapping[str, tuple[Callable[[int, int, int], bytes], str]] = {
    "observation": (observation, "application/n-quads"),
    "post": (post, "text/turtle"),
}
"""What an event can be, and the media type of its body."""
