"""Workloads of `bench match`: subscriptions and events by name. Both follow from their numbers alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, lru_cache
from itertools import permutations
from math import isqrt, log1p
from operator import gt, lt

import orjson

from bench.harness import BASE
from bench.match_templates import FilledTemplate, FilterTemplate, Objects, Template
from triplewire.model import Kind
from triplewire.model.errors import Unsupported
from triplewire.model.terms import RDF_TYPE, XSD, literal, plain


@dataclass(frozen=True)
class MatchWorkload:
    """Templates, each one object so that it is lifted once; subscriptions by number; and the stream and the five quads
    of events by number, as the log holds them."""

    templates: Sequence[Template]
    question: Callable[[int], FilledTemplate]
    event: Callable[[int], tuple[str, str]]


def draw(seed: int, number: int) -> int:
    """Return 64 bits for the `number`th thing of a seed (splitmix64): anything can be made again alone."""
    mask, golden = 2**64 - 1, 0x9E3779B97F4A7C15
    state = (seed * golden + number * 0xD1342543DE82EF95 + golden) & mask
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & mask
    return state ^ (state >> 31)


def _split(bits: int, *bounds: int) -> list[int]:
    """Return a number below each of the bounds, out of the bits."""
    found = []
    for bound in bounds:
        bits, number = divmod(bits, bound)
        found.append(number)
    return found


def _fraction(bits: int) -> float:
    return bits / 2**64


def write_time(second: int) -> str:
    return f'"2026-11-16T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"^^<{XSD}dateTime>'


_PATH = Template(
    f"SELECT * {{ $i0 <{BASE}first> ?a . ?a <{BASE}second> ?b . ?b <{BASE}third> ?c . ?c <{BASE}fourth> ?d . "
    f"?d <{BASE}fifth> $i1 }}"
)
_BROKEN = 5
"""So many events have one among them with both ends of a path, but a chain that is broken in the middle."""


def make_paths(subscriptions: int, matches: float) -> MatchWorkload:
    """An event is a chain of five quads, a subscription a path of five patterns between two constants. Both ends are
    drawn from pools whose product says how seldom a path meets a chain."""
    pairs = subscriptions / matches * (_BROKEN - 1) / _BROKEN
    starts = max(1, isqrt(round(pairs)))
    ends = max(1, round(pairs / starts))

    def question(number: int) -> FilledTemplate:
        start, end = _split(draw(11, number), starts, ends)
        return FilledTemplate(_PATH, (f"<{BASE}start/{start}>", f"<{BASE}end/{end}>"))

    def event(number: int) -> tuple[str, str]:
        start, end, broken, turn = _split(draw(12, number), starts, ends, _BROKEN, 5)
        node = f"<{BASE}n/{number}/"
        nodes = [f"{node}1>", f"{node}2>", f"{node}3>", f"{node}4>", f"<{BASE}end/{end}>"]
        before = [f"<{BASE}start/{start}>", *nodes[:2], f"{node}x>" if broken == 0 else nodes[2], nodes[3]]
        names = ("first", "second", "third", "fourth", "fifth")
        lines = [f"{one}\t<{BASE}{name}>\t{two}" for one, name, two in zip(before, names, nodes, strict=True)]
        return "bench", "\n".join(lines[turn:] + lines[:turn])

    return MatchWorkload((_PATH,), question, event)


_SENSORS = 1_000
_SELDOM = 10
"""A value passes at most one of so many thresholds, in the mean."""
_OF_SENSOR = Template(f"SELECT * {{ ?o <{BASE}sensor> $i0 ; <{BASE}value> ?v FILTER(?v > $n1) }}")
_OF_ANY = Template(f"SELECT * {{ ?o <{BASE}value> ?v FILTER(?v > $n0) }}")


def make_sensors(subscriptions: int, matches: float) -> MatchWorkload:
    """Readings, and thresholds for one sensor each that most do not reach. Thresholds lie evenly below `top`; values
    are 1 in the mean. There are fewer sensors where few subscriptions have many matches."""
    sensors = max(1, min(_SENSORS, round(subscriptions / matches / _SELDOM)))
    top = subscriptions / sensors / matches

    def question(number: int) -> FilledTemplate:
        (sensor,) = _split(draw(21, number), sensors)
        return FilledTemplate(_OF_SENSOR, (f"<{BASE}sensor/{sensor}>", _write_threshold(number, top)))

    return MatchWorkload((_OF_SENSOR,), question, lambda number: ("bench", _write_reading(number, sensors)))


def make_ranges(subscriptions: int, matches: float) -> MatchWorkload:
    """Readings, and thresholds for all sensors at once."""

    def question(number: int) -> FilledTemplate:
        return FilledTemplate(_OF_ANY, (_write_threshold(number, subscriptions / matches),))

    return MatchWorkload((_OF_ANY,), question, lambda number: ("bench", _write_reading(number, _SENSORS)))


def _write_threshold(number: int, top: float) -> str:
    """Spread thresholds as evenly as can be, however many there are: few of them decide how many matches there are."""
    return f'"{(number + 0.5) * 0.6180339887498949 % 1 * top:.6f}"^^<{XSD}decimal>'


def _write_reading(number: int, sensors: int) -> str:
    sensor, kind, second = _split(draw(22, number), sensors, 2, 86_400)
    value = -log1p(-(draw(23, number) >> 11) / 2**53)
    return _write_report(
        number,
        ("Reading", f"<{BASE}sensor>\t<{BASE}sensor/{sensor}>"),
        f'"{value:.6f}"^^<{XSD}{("double", "decimal")[kind]}>',
        (sensor % 7, second),
    )


def _write_report(number: int, about: tuple[str, str], value: str, rest: tuple[int, int]) -> str:
    """Return five quads: a class, a quad that the workload is about, a value, a unit and a time."""
    (kind, named), (unit, second) = about, rest
    pairs = (
        f"{RDF_TYPE}\t<{BASE}{kind}>",
        named,
        f"<{BASE}value>\t{value}",
        f"<{BASE}unit>\t<{BASE}unit/{unit}>",
        f"<{BASE}at>\t{write_time(second)}",
    )
    return "\n".join(f"<{BASE}o/{number}>\t{pair}" for pair in pairs)


CLASSES = 10_000
DEEP = 8
_WHOLE: int = (3 ** (DEEP + 1) - 1) // 2
"""Classes of the whole tree; the few that are more hang beside others of the lowest level."""
_LOWEST: int = (3**DEEP - 1) // 2
_ABOVE: int = (3 ** (DEEP - 1) - 1) // 2
"""The first class of the lowest level, and of the one above it."""
_OFTEN, _LIVELY = 0.8, 0.1
"""The share of subscriptions that name a lowest class, and of events that match, where there are enough classes."""
_PARTNERS = _OFTEN + 3 * (1 - _OFTEN)
"""Matches of an event about the lowest level, times its classes, for each subscription."""


def _write_class(number: int) -> str:
    return f"<{BASE}class/{number}>"


def _parent_of(number: int) -> int | None:
    """Return the class above; None for the root."""
    if number >= _WHOLE:
        return _ABOVE + number - _WHOLE
    return (number - 1) // 3 if number else None


def write_ontology() -> str:
    """Return a tree with three classes below each, eight deep, as the registry holds it: a triple a line."""
    above = ((number, _parent_of(number)) for number in range(CLASSES))
    sub_class = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    return "\n".join(f"{_write_class(each)}\t{sub_class}\t{_write_class(up)}" for each, up in above if up is not None)


@lru_cache(maxsize=CLASSES)
def find_ancestors(term: str) -> frozenset[str]:
    """Return a class and all above it, by going up the tree."""
    found, number = {term}, _parent_of(int(term[1:-1].rpartition("/")[2]))
    while number is not None:
        found.add(_write_class(number))
        number = _parent_of(number)
    return frozenset(found)


_BELOW = FilterTemplate(
    f'{{"filter": [{{"attribute": "{BASE}about", "op": "@>", "value": {{"@id": "$i0"}}}}]}}',
    holds=lambda terms, objects: any(terms[0] in find_ancestors(each) for each in objects.get(f"<{BASE}about>", ())),
)


def make_classes(subscriptions: int, matches: float) -> MatchWorkload:
    """Filters for sub-classes of a class. Most events are about a class further up, which has ancestors to look for,
    too, and no subscriptions; the others are about one of the lowest, and match all that named it or its parent."""
    share = matches / subscriptions
    named = max(3, min(CLASSES - _LOWEST, round(_LIVELY * _PARTNERS / share)))
    lively = min(1.0, share * named / _PARTNERS)

    def question(number: int) -> FilledTemplate:
        chosen = _LOWEST + draw(51, number) % named
        upper = _parent_of(chosen) if _fraction(draw(52, number)) >= _OFTEN else None
        return FilledTemplate(_BELOW, (_write_class(chosen if upper is None else upper),))

    def event(number: int) -> tuple[str, str]:
        bits = draw(54, number)
        chosen = _LOWEST + bits % named if _fraction(draw(53, number)) < lively else bits % _ABOVE
        value, second = _split(draw(55, number), 1_000_000, 86_400)
        about = ("Report", f"<{BASE}about>\t{_write_class(chosen)}")
        return "bench", _write_report(number, about, f'"{value}"^^<{XSD}integer>', (value % 7, second))

    return MatchWorkload((_BELOW,), question, event)


STREAMS = ("north", "south")
SKELETONS = 10
_HUNDRED = 100_000_000
_ARRANGEMENTS: Sequence[Mapping[str, str]] = (
    {"key": "o", "value": "o", "time": "o", "label": "o", "class": "o"},
    {"key": "o", "value": "o", "time": "o", "label": "s", "class": "o"},
    {"key": "o", "link": "o", "value": "m", "time": "m", "label": "s"},
    {"link": "o", "key": "m", "value": "o", "time": "m", "label": "s"},
    {"key": "o", "value": "s", "time": "o", "label": "o", "class": "o"},
)
"""The node that each predicate hangs on: the observation, the entity of its link, or that of its key."""
_VARIABLES = {"key": "?s", "link": "?m", "value": "?v", "time": "?t", "label": "?l", "class": "?c"}


@dataclass(frozen=True)
class Skeleton:
    """A kind of events. All have a key, a value, a time, a label and one quad more, under predicates of their own."""

    number: int

    def predicate(self, role: str) -> str:
        return f"<{BASE}kind/{self.number}/{role}>"

    def patterns(self, *roles: str, **given: str) -> str:
        """Return patterns that join the roles, the key and the link always among them; `given` are terms for some."""
        wanted = [role for role in self._nodes if role in roles or role in ("key", "link")]
        return " . ".join(self.pattern(role, **given) for role in wanted)

    def pattern(self, role: str, **given: str) -> str:
        subject = "?" + self._nodes[role]
        subject = given.get("key", subject) if subject == "?s" else subject
        return f"{subject} {self.predicate(role)} {given.get(role, _VARIABLES[role])}"

    @property
    def _nodes(self) -> Mapping[str, str]:
        return _ARRANGEMENTS[self.number % len(_ARRANGEMENTS)]


def write_key(key: int) -> str:
    return f"<{BASE}key/{key}>"


def write_number(millionths: int, kind: str = "decimal") -> str:
    """Values are from 0 to 100, in steps of a millionth."""
    return f'"{millionths // 1_000_000}.{millionths % 1_000_000:06}"^^<{XSD}{kind}>'


def _write_label(label: int, form: int) -> str:
    text = f"{label:06}-unit"
    return (f'"{text}"', f'"{text}"@en', f'"{text}"@fr', f"<{BASE}label/{text}>")[form]


@dataclass(frozen=True)
class Reports:
    """Events of so many skeletons, about so many keys in each. Labels are drawn from as many."""

    skeletons: int
    keys: int

    @classmethod
    def of(cls, skeletons: int, share: float, passing: float) -> Reports:
        """Choose the keys so that a subscription matches that share of all events, if it matches `passing` of the
        events of one skeleton and one key."""
        return cls(skeletons, max(1, round(passing / (share * skeletons))))

    def event(self, number: int) -> tuple[str, str]:
        kind, key, label, stream = _split(draw(31, number), self.skeletons, self.keys, self.keys, len(STREAMS))
        value, second, form, exact, named = _split(draw(32, number), _HUNDRED, 86_400, 4, 2, 20)
        nodes = {"o": f"<{BASE}o/{number}>", "m": f"<{BASE}m/{number}>", "s": write_key(key)}
        values = {
            "key": nodes["s"],
            "link": nodes["m"],
            "value": write_number(value, ("decimal", "double")[exact]),
            "time": write_time(second),
            "label": _write_label(label, form),
            "class": _write_class(named),
        }
        base, hangs = f"<{BASE}kind/{kind}/", _ARRANGEMENTS[kind % len(_ARRANGEMENTS)].items()
        return STREAMS[stream], "\n".join(f"{nodes[node]}\t{base}{role}>\t{values[role]}" for role, node in hangs)


@dataclass(frozen=True)
class Constants:
    """Terms for the subscription of a number."""

    number: int
    keys: int

    @property
    def bits(self) -> int:
        return draw(43, self.number)

    def key(self, turn: int = 0) -> str:
        return write_key((draw(42, self.number) + turn) % self.keys)

    def value(self) -> str:
        return write_number(self.bits % _HUNDRED)

    def interval(self) -> tuple[str, str]:
        """Return an interval that is half of all values."""
        low = self.bits % _HUNDRED // 2
        return write_number(low), write_number(low + _HUNDRED // 2)

    def high(self) -> str:
        """Return a threshold that values pass as seldom as they have a key and pass a filter."""
        return write_number(_HUNDRED - round(_fraction(self.bits) * _HUNDRED / self.keys))

    def stream(self) -> str:
        return f'"{STREAMS[self.bits % _HUNDRED % len(STREAMS)]}"'


_TESTS = ("isIRI(?l)", "isLiteral(?l)", 'LANG(?l) = "fr"', f"DATATYPE(?v) = <{XSD}decimal>")
STRUCTURES: Sequence[tuple[Callable[[Skeleton], str], Callable[[Constants], tuple[str, ...]]]] = (
    (lambda its: its.patterns("value", "time", "class", key="$i0"), lambda its: (its.key(),)),
    (lambda its: f"{its.patterns('value', key='$i0')} FILTER(?v > $n1)", lambda its: (its.key(), its.value())),
    (
        lambda its: f"{its.patterns('value', key='$i0')} FILTER(?v >= $n1 && ?v < $n2)",
        lambda its: (its.key(), *its.interval()),
    ),
    (
        lambda its: f"{its.patterns('value')} FILTER(?s IN ($i0, $i1)) FILTER(?v < $n2)",
        lambda its: (its.key(), its.key(1), its.value()),
    ),
    (
        lambda its: f"{its.patterns('time', key='$i0')} FILTER(?t >= $t1)",
        lambda its: (its.key(), write_time(its.bits % 86_400)),
    ),
    (lambda its: f"{its.patterns('label')} FILTER(STRSTARTS(?l, $s0))", lambda its: (f'"{its.bits % its.keys:06}"',)),
    (lambda its: its.patterns("label", "time", label="$s0"), lambda its: (_write_label(its.bits % its.keys, 0),)),
    (
        lambda its: f"{its.patterns('label', 'value', key='$i0')} FILTER({_TESTS[its.number % 4]})",
        lambda its: (its.key(),),
    ),
    (lambda its: f"{its.patterns('value')} FILTER(?v > $n0)", lambda its: (its.high(),)),
    (lambda its: its.patterns("class", "time", key="$i0"), lambda its: (its.key(), its.stream())),
)
"""How to write a text for a skeleton, and the terms that fill its slots. The last listens to one stream."""
_MIXED_PASSING, _RESIDUAL_PASSING = 0.6, 0.47
"""How many times as often as an event has one given key a subscription matches, in the mean over the structures."""


@cache
def _make_mixed_templates(skeletons: int) -> Sequence[Template]:
    """Return ten for each skeleton, asked for in all three ways."""
    kinds, last = tuple(Kind), len(STRUCTURES) - 1
    return [
        Template(f"SELECT * {{ {text(Skeleton(number))} }}", kinds[(number + at) % len(kinds)], streamed=at == last)
        for number in range(skeletons)
        for at, (text, _) in enumerate(STRUCTURES)
    ]


def make_mixed(subscriptions: int, matches: float, skeletons: int = SKELETONS) -> MatchWorkload:
    """Subscriptions of ten structures for each skeleton in turn: equality, `IN`, ranges of numbers and times, prefixes,
    tests of terms, and streams."""
    reports = Reports.of(skeletons, matches / subscriptions, _MIXED_PASSING)
    templates = _make_mixed_templates(skeletons)

    def question(number: int) -> FilledTemplate:
        at = number % len(templates)
        return FilledTemplate(templates[at], STRUCTURES[at % len(STRUCTURES)][1](Constants(number, reports.keys)))

    return MatchWorkload(templates, question, reports.event)


def make_distinct(subscriptions: int, matches: float) -> MatchWorkload:
    """`mixed`, with as many skeletons as it takes for every subscription to have a structure of its own."""
    return make_mixed(subscriptions, matches, -(-subscriptions // len(STRUCTURES)))


_ALL = Template("SELECT * { ?s ?p ?o }")
_ACCEPTING = 20


def make_everything(subscriptions: int, matches: float) -> MatchWorkload:
    """`mixed`, but that one subscription in twenty accepts every event."""
    others = make_mixed(subscriptions, matches)

    def question(number: int) -> FilledTemplate:
        # One further in every round of structures, so that none of them is left out.
        turn = number + number // len(others.templates)
        return FilledTemplate(_ALL, ()) if turn % _ACCEPTING == 0 else others.question(number)

    return MatchWorkload((*others.templates, _ALL), question, others.event)


def _write_above(its: Skeleton) -> str:
    return f"{its.patterns('value', key='$i0')} FILTER(?v > $n1)"


def _write_value(its: Skeleton) -> str:
    return its.pattern("value", key="$i0") + " FILTER(?v > $n1)"


TEXTS: Sequence[Callable[[Skeleton], str]] = (
    lambda its: (
        f"SELECT * {{ {its.patterns('label', 'value', key='$i0')} "
        f'FILTER(REGEX(STR(?l), "^.*{its.number % 5}[0-9]?-unit$")) FILTER(?v > $n1) }}'
    ),
    lambda its: f"SELECT * {{ {its.patterns(key='$i0')} OPTIONAL {{ {_write_value(its)} }} FILTER(!BOUND(?v)) }}",
    lambda its: f"SELECT * {{ {its.patterns(key='$i0')} FILTER NOT EXISTS {{ {_write_value(its)} }} }}",
    lambda its: (
        f"SELECT ?o (MAX(?v) AS ?most) {{ {its.patterns('value', key='$i0')} }} GROUP BY ?o HAVING (MAX(?v) > $n1)"
    ),
    lambda its: f"SELECT * {{ {its.patterns('time', key='$i0')} MINUS {{ {_write_above(its)} }} }}",
    lambda its: (
        f"SELECT * {{ {{ {_write_above(its)} }} UNION {{ {its.patterns('label', key='$i0')} FILTER(isIRI(?l)) }} }}"
    ),
    lambda its: f"SELECT * {{ {its.patterns(key='$i0')} FILTER EXISTS {{ {_write_value(its)} }} }}",
    lambda its: f"SELECT (AVG(?v) AS ?mean) {{ {its.patterns('value', key='$i0')} }} HAVING (AVG(?v) > $n1)",
)
"""Regular expression, `OPTIONAL`, `NOT EXISTS`, a maximum, `MINUS`, `UNION`, `EXISTS` and a mean."""

Related = Callable[[Decimal, Decimal], bool]
BAGS: Sequence[tuple[str, Related, Sequence[str]]] = (("#=/>", gt, ("$n1",)), ("#</<", lt, ("$n1", "0.500000")))
"""Bags of values: the operator, the relation of elements, and the elements."""


def make_residual(subscriptions: int, matches: float) -> MatchWorkload:
    """Subscriptions that no index decides. Each names one key, so that an index can say for which events they are
    worth evaluating."""
    reports, templates = Reports.of(SKELETONS, matches / subscriptions, _RESIDUAL_PASSING), _make_residual_templates()

    def question(number: int) -> FilledTemplate:
        constants = Constants(number, reports.keys)
        return FilledTemplate(templates[number % len(templates)], (constants.key(), constants.value()))

    return MatchWorkload(templates, question, reports.event)


@cache
def _make_residual_templates() -> Sequence[Template]:
    found, kinds = list[Template](), tuple(Kind)
    for its in map(Skeleton, range(SKELETONS)):
        for at, text in enumerate(TEXTS):
            found.append(Template(text(its), kinds[(its.number + at) % len(kinds)], plain=False))
        found += [_make_bag(its, *bag) for bag in BAGS]
    return found


def _make_bag(its: Skeleton, op: str, related: Related, elements: Sequence[str]) -> FilterTemplate:
    """Return a filter for a key, and a bag of the values."""
    key, value = its.predicate("key"), its.predicate("value")
    operands = [{"@value": each, "@type": f"{XSD}decimal"} for each in elements]
    constraints = [
        {"attribute": key[1:-1], "op": "=", "value": {"@id": "$i0"}},
        {"attribute": value[1:-1], "op": op, "value": operands},
    ]

    def holds(terms: Sequence[str], objects: Objects) -> bool:
        wanted = [terms[1] if each == "$n1" else literal(each, f"{XSD}decimal") for each in elements]
        return terms[0] in objects.get(key, ()) and _pair_bag(op[:2], related, objects.get(value, ()), wanted)

    return FilterTemplate(orjson.dumps({"filter": constraints}).decode(), holds=holds)


def _pair_bag(bag: str, related: Related, values: Sequence[str], elements: Sequence[str]) -> bool:
    """Evaluate a bag operator on numbers, by trying all ways to pair."""
    left, right = ([Decimal(plain(each)) for each in terms] for terms in (values, elements))
    if not left or {"#=": len(left) != len(right), "#<": len(left) > len(right), "#>": len(left) < len(right)}[bag]:
        return False
    ways: Iterator[zip[tuple[Decimal, Decimal]]]
    if bag == "#>":
        ways = (zip(chosen, right, strict=True) for chosen in permutations(left, len(right)))
    else:
        ways = (zip(left, chosen, strict=True) for chosen in permutations(right, len(left)))
    return any(all(related(value, element) for value, element in way) for way in ways)


@dataclass(frozen=True)
class WorkloadKind:
    """How a workload is made: for how many subscriptions and how many matches of an event, on average."""

    make: Callable[[int, float], MatchWorkload]
    rate: tuple[int, float] | None
    """Matches of an event with so many subscriptions, in proportion; None for one match with any number."""
    usual: int = 100_000
    """Subscriptions by default."""
    ontology: Callable[[], str] | None = None
    """The ontology that is loaded before them, a triple a line."""


WORKLOADS: Mapping[str, WorkloadKind] = {
    "paths": WorkloadKind(make_paths, (100_000, 0.4)),
    "mixed": WorkloadKind(make_mixed, (100_000, 2.0)),
    "distinct": WorkloadKind(make_distinct, None, usual=1_000),
    "sensors": WorkloadKind(make_sensors, (100_000, 1.0)),
    "ranges": WorkloadKind(make_ranges, (100_000, 10.0)),
    "classes": WorkloadKind(make_classes, (100_000, 2.0), ontology=write_ontology),
    "everything": WorkloadKind(make_everything, (100_000, 2.0)),
    "residual": WorkloadKind(make_residual, (10_000, 1.0), usual=10_000),
}


@dataclass(frozen=True)
class ChosenWorkload:
    """A workload of a size."""

    subscriptions: int
    matches: float
    workload: MatchWorkload = field(repr=False)
    ontology: str | None = field(default=None, repr=False)


def find_workload(name: str) -> WorkloadKind:
    """Raises Unsupported for an unknown name."""
    if name not in WORKLOADS:
        raise Unsupported(f"the workload `{name}`", hint=f"there are {', '.join(WORKLOADS)}")
    return WORKLOADS[name]


def choose_workload(name: str, subscriptions: int, matches: float | None = None) -> ChosenWorkload:
    """Raises Unsupported for an unknown name."""
    kind = find_workload(name)
    at, usual = kind.rate or (subscriptions, 1.0)
    wanted = usual * subscriptions / at if matches is None else matches
    ontology = None if kind.ontology is None else kind.ontology()
    return ChosenWorkload(subscriptions, wanted, kind.make(subscriptions, wanted), ontology)
