"""Expressions: every operator and function, over variables that are bound, or not, or to something else.

By what they mostly give: `numbers`, `strings`, `moments`, `terms`, `conditions`. One in a few operands is of another
kind, so that errors come up everywhere. Not generated, as pyoxigraph departs from the specification there or the
specification leaves it open: `<` and its like of terms without an order (it has one of any term and itself), quotients
that do not end and those by decimals below one (to it, 0 / 0.5 is an error), parts of texts by numbers that are no
integers, and functions that give something else each time, but for its kind.
"""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import strategies as st

from tests.differential import vocabulary

Texts: TypeAlias = st.SearchStrategy[str]

RESOURCE_NAMES = ("?a", "?b", "?c")
VALUE_NAMES = ("?x", "?y", "?z")
VARIABLES = (*RESOURCE_NAMES, *VALUE_NAMES)
_NEVER = "?never"

variables = st.sampled_from((*VARIABLES, *VALUE_NAMES, "?r"))
resources = st.sampled_from((*RESOURCE_NAMES, *vocabulary.RESOURCES))
_bare = st.sampled_from(VALUE_NAMES)


def call(name: str, *arguments: Texts) -> Texts:
    return st.tuples(*arguments).map(lambda given: f"{name}({', '.join(given)})")


def _calls(names: str, *arguments: Texts) -> Texts:
    return st.one_of(*(call(name, *arguments) for name in names.split()))


def _infix(left: Texts, operators: tuple[str, ...], right: Texts) -> Texts:
    return st.tuples(left, st.sampled_from(operators), right).map(lambda given: f"({' '.join(given)})")


def _mostly(right: Texts, wrong: Texts) -> Texts:
    return st.one_of(right, right, right, right, wrong)


_numbers: Texts = st.deferred(lambda: _NUMBERS)
_strings: Texts = st.deferred(lambda: _STRINGS)
_conditions: Texts = st.deferred(lambda: _CONDITIONS)
_literals = st.sampled_from(vocabulary.LITERALS)
terms: Texts = st.one_of(variables, variables, _literals, resources, st.just(_NEVER))

moments = _mostly(st.one_of(_bare, st.sampled_from((*vocabulary.TIMES, *vocabulary.DATES))), _literals)
_plain = _mostly(st.one_of(_bare, call("STR", variables), st.sampled_from(vocabulary.STRINGS)), _strings)
_texts = _mostly(st.one_of(_plain, st.sampled_from(vocabulary.TAGGED)), _literals)
_short = st.sampled_from(('"a"', '"b"', '""', '"a"@en', '"B"', '"/"'))
_patterns = st.sampled_from(('"^a"', '"b$"', '"[^a-z]"', '"(a)(b?)"', '"\\\\d+"', '"a|é"', '"."', '"B A"'))
_flags = st.sampled_from(('"i"', '"s"', '"m"', '"x"', '"im"', '"q"', '""'))
_small = st.sampled_from(("0", "1", "2", "3", "-1"))
_number = _mostly(st.one_of(_bare, st.sampled_from(vocabulary.NUMBERS)), terms)
_halves = st.sampled_from(("2", "5e-1", "4.0", "1e0", "-2", "0"))

_casts = st.sampled_from(("integer", "decimal", "float", "double", "string", "boolean", "dateTime"))
casts = st.tuples(_casts, st.one_of(terms, _numbers)).map(lambda given: f"xsd:{given[0]}({given[1]})")

_NUMBERS: Texts = st.one_of(
    _number,
    _number,
    _infix(_number, ("+", "-", "*"), _number),
    _infix(_number, ("/",), _halves),
    _calls("ABS CEIL FLOOR ROUND", _number),
    _number.map(lambda inner: f"(-{inner})"),
    _calls("STRLEN", _texts),
    _calls("YEAR MONTH DAY HOURS MINUTES SECONDS", moments),
    call("IF", _conditions, _number, _number),
    call("COALESCE", _number, _numbers),
    call("xsd:integer", _number),
    call("xsd:double", _number),
)
_STRINGS: Texts = st.one_of(
    _texts,
    call("STR", st.one_of(terms, _bare)),
    _calls("UCASE LCASE ENCODE_FOR_URI", _texts),
    _calls("CONCAT", _texts, _plain),
    _calls("STRBEFORE STRAFTER", _texts, _short),
    call("SUBSTR", _texts, _small),
    call("SUBSTR", _texts, _small, _small),
    call("REPLACE", _texts, _patterns, st.sampled_from(('"-"', '"[$1]"', '""'))),
    call("REPLACE", _texts, st.sampled_from(('"A"', '"b."')), st.just('"-"'), _flags),
    _calls("LANG", terms),
    _calls("MD5 SHA1 SHA256 SHA384 SHA512", _plain),
    _calls("TZ", moments),
    call("STRLANG", _plain, st.sampled_from(('"en"', '"de"'))),
    call("IF", _conditions, _texts, _texts),
    call("COALESCE", st.just(_NEVER), _texts),
    call("xsd:string", terms),
)
_things: Texts = st.one_of(
    _calls("DATATYPE", terms),
    call("IRI", st.one_of(resources, st.sampled_from((f'"{vocabulary.EX}a"', f'"{vocabulary.EX}zz"')))),
    call("URI", resources),
    call("STRDT", _plain, st.sampled_from(("xsd:string", ":type"))),
    _calls("TIMEZONE", moments),
    st.sampled_from(("DATATYPE(NOW())", "DATATYPE(RAND())", "STRLEN(STRUUID())", "isIRI(UUID())", "isBLANK(BNODE())")),
    casts,
)
_EFFECTIVE = tuple(each for each in vocabulary.LITERALS if each not in vocabulary.TAGGED + vocabulary.STRANGE)
"""pyoxigraph finds tagged literals, and numbers whose text is none, neither true nor false."""
_unordered = ("=", "!=", "<", ">")
_CONDITIONS: Texts = st.one_of(
    _infix(terms, ("=", "!="), terms),
    _infix(_number, (*_unordered, "<=", ">="), st.sampled_from(vocabulary.INTEGERS)),
    _infix(moments, _unordered, st.sampled_from((*vocabulary.TIMES, *vocabulary.DATES))),
    _infix(_strings, _unordered, st.sampled_from(('"a"', '"b"', '""', '"/"'))),
    _calls("isIRI isURI isBLANK isLITERAL isNUMERIC", terms),
    call("BOUND", st.sampled_from((*VARIABLES, _NEVER))),
    call("sameTerm", terms, terms),
    _calls("CONTAINS STRSTARTS STRENDS", _texts, _short),
    call("REGEX", _texts, _patterns),
    call("REGEX", _texts, _patterns, _flags),
    call("LANGMATCHES", call("LANG", _bare), st.sampled_from(('"en"', '"EN"', '"*"', '"fr"', '"en-GB"'))),
    # of an empty list pyoxigraph makes an error, the specification false
    st.tuples(terms, st.sampled_from(("IN", "NOT IN")), st.lists(terms, min_size=1, max_size=3)).map(
        lambda given: f"({given[0]} {given[1]} ({', '.join(given[2])}))"
    ),
    _conditions.map(lambda inner: f"(!{inner})"),
    _infix(_conditions, ("&&", "||"), _conditions),
    call("COALESCE", _conditions, st.just("false")),
    call("IF", _conditions, _conditions, _conditions),
    st.one_of(_bare.map(lambda name: f"({name} + 0)"), st.sampled_from(_EFFECTIVE)),
)

numbers, strings, conditions = _NUMBERS, _STRINGS, _CONDITIONS
anything: Texts = st.one_of(numbers, strings, _things, conditions.map(lambda inner: f"({inner})"), terms)
