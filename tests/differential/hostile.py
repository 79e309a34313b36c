"""Hostile queries: what somebody might send to stall or crash whoever answers. Always the same thousand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

_SIZES = 22
"""Of each kind, from one to its most, each about as much larger than the last."""
_LONG = "a" * 30

Kind = Callable[[int], str]


def _nested(before: str, core: str, after: str) -> Kind:
    return lambda size: before * size + core + after * size


def _grouped(before: str, after: str = "}") -> Kind:
    """Groups in one another, around one pattern."""
    return lambda size: f"SELECT * {{ ?s ?p ?o {before * size} ?s ?p ?o {after * size} }}"


def _filtered(condition: Kind) -> Kind:
    return lambda size: f"SELECT * {{ ?s ?p ?o FILTER({condition(size)}) }}"


def _joined(separator: str, each: Callable[[int], str]) -> Kind:
    return lambda size: separator.join(map(each, range(size)))


def _within(before: str, inner: Kind, after: str) -> Kind:
    return lambda size: f"{before}{inner(size)}{after}"


def _doubled(size: int) -> str:
    """A text that doubles with each step."""
    steps = " ".join(f"BIND(CONCAT(?t{step}, ?t{step}) AS ?t{step + 1})" for step in range(size))
    return f'SELECT (STRLEN(?t{size}) AS ?n) {{ BIND("{_LONG}" AS ?t0) {steps} }}'


def _squared(size: int) -> str:
    """A number whose digits double with each step."""
    steps = " ".join(f"BIND(?t{step} * ?t{step} AS ?t{step + 1})" for step in range(size))
    return f"SELECT ?t{size} {{ BIND(12345 AS ?t0) {steps} }}"


def _selects(size: int) -> str:
    return f"SELECT * {{ {'{ SELECT * { ' * size} ?s ?p ?o {'} }' * size} }}"


def _counts(size: int) -> str:
    """Aggregates of aggregates."""
    text = "SELECT ?s (COUNT(*) AS ?n0) { ?s ?p ?o } GROUP BY ?s"
    for level in range(size):
        text = f"SELECT (SUM(?n{level}) AS ?n{level + 1}) {{ {{ {text} }} }}"
    return text


def _regex(pattern: str, subject: str = "?o") -> Kind:
    """The pattern is repeated, and so grows what it is matched with."""
    return lambda size: f'SELECT * {{ ?s <urn:text> ?o FILTER(REGEX({subject}, "{pattern * size}")) }}'


def _clique(path: Kind) -> Kind:
    return lambda size: f"SELECT (COUNT(*) AS ?n) {{ ?a {path(size)} ?b }}"


def _mess(size: int) -> str:
    """Characters of all planes, in literals, names and comments."""
    letters = "".join(chr(0x80 + number * 977 % 0xFF00) for number in range(size) if number * 977 % 0xFF00 < 0xD000)
    return f'SELECT * {{ ?s ?p "\\u202E{letters}\\U0001F600" . ?s ?p ?é{size} }} # {letters[::-1]}'


def _cut(size: int) -> str:
    """A query that ends anywhere."""
    return _grouped("OPTIONAL {")(12)[: size * 5]


KINDS: Mapping[str, tuple[Kind, int]] = {
    "braces": (_grouped("{"), 20_000),
    "optionals": (_grouped("OPTIONAL { ?s ?p ?o "), 10_000),
    "minuses": (_grouped("MINUS { ?s ?p ?o "), 10_000),
    "existences": (_grouped("FILTER EXISTS { ?s ?p ?o "), 10_000),
    "absences": (_grouped("FILTER NOT EXISTS { ?o ?p ?s "), 10_000),
    "graphs": (_grouped("GRAPH ?g { "), 10_000),
    "unions in unions": (_grouped("{ ?s ?p ?o } UNION {"), 10_000),
    "sub-queries": (_selects, 10_000),
    "aggregates": (_counts, 2_000),
    "branches": (
        _within("SELECT * { ", _joined(" UNION ", lambda number: f"{{ ?s <urn:{number}> ?o }}"), " }"),
        10_000,
    ),
    "products": (
        _within("SELECT * { ", _joined(" ", lambda number: f"?s{number} ?p{number} ?o{number} ."), " }"),
        1_000,
    ),
    "counted products": (
        _within("SELECT (COUNT(*) AS ?n) { ", _joined(" ", lambda number: f"?s{number} <urn:link> ?o{number} ."), " }"),
        300,
    ),
    "stars": (_within("SELECT * { ", _joined(" ", lambda number: f"?s ?p{number} ?o{number} ."), " }"), 300),
    "chains": (
        _within("SELECT * { ", _joined(" ", lambda number: f"?n{number} <urn:link> ?n{number + 1} ."), " }"),
        300,
    ),
    "rows": (_within("SELECT * { VALUES ?v { ", _joined(" ", lambda number: f'"{number}"'), " } }"), 50_000),
    "pairs of rows": (
        _within(
            "SELECT * { VALUES ?v { ",
            lambda size: f"{_joined(' ', str)(size)} }} VALUES ?w {{ {_joined(' ', str)(size)}",
            " } FILTER(?v * ?w = 1) }",
        ),
        20_000,
    ),
    "undefined": (
        _within("SELECT * { VALUES (?s ?p ?o) { ", _joined(" ", lambda number: "(UNDEF UNDEF UNDEF)"), " } ?s ?p ?o }"),
        5_000,
    ),
    "members": (_filtered(_within("?o IN (", _joined(", ", str), ")")), 20_000),
    "strangers": (_filtered(_within("?o NOT IN (", _joined(", ", lambda number: f"?v{number}"), ")")), 5_000),
    "parentheses": (_filtered(_nested("(", "true", ")")), 50_000),
    "negations": (_filtered(_nested("!", "?o", "")), 50_000),
    "conditions": (_filtered(_nested("IF(?o, ", "true", ", false)")), 5_000),
    "alternatives": (_filtered(_joined(" || ", lambda number: f"?o = {number}")), 10_000),
    "sums": (_filtered(_joined(" + ", str)), 10_000),
    "steps": (_clique(_joined("/", lambda number: "<urn:link>")), 5_000),
    "crossings": (_clique(_joined("|", lambda number: f"<urn:{number}>")), 5_000),
    "closures": (_clique(_nested("(", "<urn:link>", "+)*")), 2_000),
    "closed steps": (_clique(_joined("/", lambda number: "<urn:link>*")), 60),
    "inversions": (_clique(_nested("^(", "<urn:link>", ")")), 5_000),
    "exclusions": (_clique(_within("!(", _joined("|", lambda number: f"<urn:{number}>"), ")+")), 5_000),
    "plus in plus": (_regex("(a+)+"), 500),
    "any or none": (_regex("(a|a?)*"), 500),
    "repetitions": (
        lambda size: f'SELECT * {{ ?s <urn:text> ?o FILTER(REGEX(?o, "((a{{0,{size}}}){{0,{size}}})$")) }}',
        5_000,
    ),
    "unclosed": (_regex("("), 5_000),
    "doublings": (_doubled, 60),
    "squares": (_squared, 60),
    "literals": (lambda size: f'SELECT * {{ ?s ?p "{"x" * size}" }}', 1_500_000),
    "addresses": (lambda size: f"SELECT * {{ ?s ?p <urn:{'x' * size}> }}", 1_500_000),
    "slices": (lambda size: f"SELECT * {{ ?s ?p ?o }} ORDER BY ?o LIMIT {'9' * size} OFFSET {'9' * size}", 5_000),
    "projections": (_within("SELECT ", _joined(" ", lambda number: f"(?s AS ?v{number})"), " { ?s ?p ?o }"), 2_000),
    "orders": (_within("SELECT * { ?s ?p ?o } ORDER BY ", _joined(" ", lambda number: "DESC(?o)"), ""), 2_000),
    "lists": (lambda size: f"SELECT * {{ ?s ?p {'(' * size} {')' * size} }}", 10_000),
    "properties": (lambda size: f"SELECT * {{ ?s ?p {'[ ?p ' * size} 1 {']' * size} }}", 10_000),
    "triple terms": (lambda size: f"SELECT * {{ ?s ?p {'<<( ?s ?p ' * size} 1 {')>>' * size} }}", 5_000),
    "prefixes": (_within("", _joined(" ", lambda number: f"PREFIX p{number}: <urn:{number}>"), " ASK {}"), 10_000),
    "messes": (_mess, 50_000),
    "cuts": (_cut, 60),
    "texts": (
        lambda size: f'SELECT (REPLACE("{"ab" * size}", "(a)(b)", "$2$1$2$1$2$1") AS ?t) {{ ?s ?p ?o }}',
        20_000,
    ),
    "joined texts": (
        lambda size: f"SELECT (GROUP_CONCAT(?o; SEPARATOR='{'-' * size}') AS ?t) {{ ?s ?p ?o . ?a ?b ?c }}",
        20_000,
    ),
    "templates": (
        _within(
            "CONSTRUCT { ", _joined(" . ", lambda number: f"?s <urn:{number}> ?o"), " } WHERE { ?s ?p ?o . ?a ?b ?c }"
        ),
        2_000,
    ),
}


def queries() -> Iterator[tuple[str, str]]:
    """Each with the name of its kind and its size."""
    for name, (kind, most) in KINDS.items():
        for size in sizes(most):
            yield f"{name} {size}", kind(size)


def sizes(most: int) -> list[int]:
    return sorted({max(1, round(most ** (step / (_SIZES - 1)))) for step in range(_SIZES)})
