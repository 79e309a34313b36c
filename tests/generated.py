"""Generated events and subscriptions, small enough to meet each other often."""

from __future__ import annotations

from random import Random

from triplewire.model import Event
from triplewire.model.terms import XSD, iri, literal

EX = "http://example.org/"
SENSORS = [iri(f"{EX}sensor/{name}") for name in ("a", "b", "c", "d/1")]
PROPERTIES = [iri(f"{EX}{name}") for name in ("by", "of", "value", "label", "near")]
PLACES = [iri(f"{EX}place/{number}") for number in range(3)]
LABELS = [
    literal("kalt"),
    literal("kalt", language="de"),
    literal('a "quoted" \\ text\n'),
    literal("Kälte 😀"),
    literal("", XSD + "string"),
]
# The oracle keeps values and not texts: numbers are written here as it would write them.
NUMBERS = [
    literal("-3", XSD + "integer"),
    literal("7", XSD + "integer"),
    literal("7", XSD + "decimal"),
    literal("7.5", XSD + "decimal"),
    literal("10", XSD + "double"),
    literal("INF", XSD + "double"),
    literal("12", XSD + "float"),
    literal("many", XSD + "integer"),
]

_FILTERS = (
    "FILTER(?v > {number})",
    "FILTER(?v <= {number})",
    "FILTER(?v = {number})",
    "FILTER(?v != {number})",
    "FILTER(?v * 2 - 1 >= {number})",
    'FILTER(?v > {number} || CONTAINS(STR(?v), "l"))',
    "FILTER(!(?v < {number}))",
    "FILTER(?v > {number} && ?v < 100)",
    'FILTER(STRSTARTS(STR(?s), "http://example.org/sensor/{letter}"))',
    'FILTER(REGEX(STR(?v), "^[0-9.]+$"))',
    'FILTER(CONTAINS(?v, "al"))',
    'FILTER(LANG(?v) = "de")',
    "FILTER(DATATYPE(?v) = <http://www.w3.org/2001/XMLSchema#decimal>)",
    "FILTER(BOUND(?v))",
    "",
)
_PATTERNS = (
    "?s <{ex}value> ?v",
    "?s <{ex}by> {sensor} ; <{ex}value> ?v",
    "?s <{ex}by> ?w . ?s <{ex}label> ?v",
    "?s ?p ?v",
    "{sensor} ?p ?v . ?s <{ex}near> {sensor}",
    "?s <{ex}near> ?t . ?t <{ex}value> ?v",
    "GRAPH ?g {{ ?s <{ex}of> {place} ; <{ex}value> ?v }}",
    "?s ?p {place} . ?s <{ex}value> ?v . ?s <{ex}label> ?l",
)


def event(random: Random, number: int) -> Event:
    """One to six quads, without repeats."""
    lines = {_quad(random): None for _ in range(random.randint(1, 6))}
    return Event(f"{EX}event/{number}", "\n".join(lines))


def sparql(random: Random) -> str:
    """A SELECT over the same few terms, so that it matches some events and not others."""
    pattern = random.choice(_PATTERNS).format(ex=EX, sensor=random.choice(SENSORS), place=random.choice(PLACES))
    condition = random.choice(_FILTERS).format(
        number=random.choice(["7", "7.0", "10", "-3.5", "1e1"]), letter="ab"[random.randrange(2)]
    )
    form = random.choice(["SELECT *", "SELECT DISTINCT ?v", "SELECT ?s ?v"])
    return f"{form} {{ {pattern} {condition} }}"


def _quad(random: Random) -> str:
    predicate = random.choice(PROPERTIES)
    objects = {"by": SENSORS, "of": PLACES, "value": NUMBERS, "label": LABELS, "near": SENSORS}
    name = predicate[len(EX) + 1 : -1]
    return f"{random.choice(SENSORS)}\t{predicate}\t{random.choice(objects[name])}"
