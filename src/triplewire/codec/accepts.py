"""Accept headers: which of several things a client likes best."""

from __future__ import annotations

from collections.abc import Sequence

Range = tuple[str, float]


def preferred(accept: str | None, offered: Sequence[Sequence[str]]) -> int | None:
    """The number of the offer that an Accept header likes best; None if it takes none. An offer has media types, of
    which the first is what would be sent. Among equals the header's order decides, then ours; without a header, or
    with an empty one, the first is taken."""
    if not accept or not accept.strip():
        return 0
    ranges = [_range(part) for part in accept.split(",")]
    liked = [_preference(each, ranges) for each in offered]
    best = max(range(len(offered)), key=liked.__getitem__)
    return best if liked[best][0] > 0 else None


def qualities(header: str | None) -> dict[str, float]:
    """What a header such as Accept-Encoding says of each name."""
    return dict(map(_range, header.split(","))) if header else {}


def _range(part: str) -> Range:
    essence, *parameters = (piece.strip().lower() for piece in part.split(";"))
    version = next((each[8:].strip('"') for each in parameters if each.startswith("version=")), "")
    if version.endswith("-messages"):
        # RDF Messages are another language than the one whose media type they have.
        essence += f"; version={version}"
    quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    try:
        value = float(quality)
    except ValueError:
        value = 0.0
    return essence, value if 0.0 <= value <= 1.0 else 0.0


def _preference(media_types: Sequence[str], ranges: Sequence[Range]) -> tuple[float, int]:
    """Quality of the most specific range that covers the offer, and how early it stands (0 first, then negative)."""
    covering = [(_specificity(media_types, each), quality, -place) for place, (each, quality) in enumerate(ranges)]
    specificity, quality, place = max(covering)
    return (quality, place) if specificity else (0.0, place)


def _specificity(media_types: Sequence[str], essence: str) -> int:
    if essence in media_types:
        return 3
    if essence.endswith("/*") and media_types[0].startswith(essence[:-1]):
        return 2
    return 1 if essence == "*/*" else 0
