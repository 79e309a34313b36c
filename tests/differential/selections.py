"""Selections: what SELECT says before and after its group."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.differential.expressions import Texts, anything


@dataclass(frozen=True)
class Selection:
    """`order` names the projected variables that order the rows, with whether it is the other way round."""

    head: str
    names: tuple[str, ...]
    tail: str = ""
    order: tuple[tuple[str, bool], ...] = ()
    reduced: bool = False


def inner(names: tuple[str, ...], mark: str) -> st.SearchStrategy[Selection]:
    """Of a sub-query: what it gives must be determined, so a slice has a total order under it. `mark` ends the names
    that it makes."""
    return st.one_of(_projected(names, mark), _grouped(names, mark), _sliced(names, mark))


def plain(names: tuple[str, ...]) -> st.SearchStrategy[Selection]:
    """Of a query that neither groups nor orders."""
    return _projected(names, "")


def outer(names: tuple[str, ...]) -> st.SearchStrategy[Selection]:
    """Of the whole query."""
    plain = _projected(names, "", outermost=True)
    return st.one_of(plain, plain, _grouped(names, "")).flatmap(_ordered)


@st.composite
def _projected(draw: st.DrawFn, names: tuple[str, ...], mark: str, outermost: bool = False) -> Selection:
    word = draw(st.sampled_from(("", "", "DISTINCT", "REDUCED") if outermost else ("", "DISTINCT")))
    reduced, word = (True, "") if word == "REDUCED" else (False, word)
    if draw(st.booleans()):
        return Selection(f"{word} *", names, reduced=reduced)
    chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=3)) if names else []
    if chosen and not draw(st.booleans()):
        return Selection(f"{word} {' '.join(chosen)}", tuple(chosen), reduced=reduced)
    computed = draw(anything)
    return Selection(f"{word} {' '.join(chosen)} ({computed} AS ?m{mark})", (*chosen, f"?m{mark}"), reduced=reduced)


def _aggregates(names: tuple[str, ...]) -> Texts:
    """Those whose value no order of the group changes: of texts that are joined, the length."""
    of_one = (
        "COUNT({0})",
        "COUNT(DISTINCT {0})",
        "SUM({0})",
        "SUM(DISTINCT {0})",
        "AVG({0})",
        "MIN(STR({0}))",
        "MAX(STR({0}))",
        "MIN(STRLEN(STR({0})))",
        "MAX(DISTINCT STRLEN(STR({0})))",
        "SUM(STRLEN(STR({0})))",
        "STRLEN(GROUP_CONCAT(STR({0})))",
        'STRLEN(GROUP_CONCAT(DISTINCT STR({0}); SEPARATOR=", "))',
        "(SUM({0}) + COUNT(*))",
        "COALESCE(SUM({0}), -1)",
    )
    whole = st.sampled_from(("COUNT(*)", "COUNT(DISTINCT *)"))
    if not names:
        return whole
    made = st.tuples(st.sampled_from(of_one), st.sampled_from(names))
    return st.one_of(whole, made.map(lambda given: given[0].format(given[1])))


@st.composite
def _grouped(draw: st.DrawFn, names: tuple[str, ...], mark: str) -> Selection:
    """Aggregates, with or without GROUP BY and HAVING."""
    keys = draw(st.lists(st.sampled_from(names), unique=True, max_size=2)) if names else []
    # pyoxigraph takes no other name for what is a variable.
    keyed = anything.map(lambda each: f"COALESCE({each})" if each.lstrip("(").startswith("?") else each)
    made = [f"({draw(keyed)} AS ?k{mark})"] if draw(st.sampled_from(range(4))) == 3 else []
    shown = (*keys, *[f"?k{mark}"][: len(made)])
    results = draw(st.lists(_aggregates(names), min_size=1, max_size=2))
    # A sample of what is the same in all of the group.
    results += [f"SAMPLE({key})" for key in keys[:1] if draw(st.booleans())]
    named = {f"?n{number}{mark}": each for number, each in enumerate(results)}
    heads = (*shown, *(f"({each} AS {name})" for name, each in named.items()))
    tail = f"GROUP BY {' '.join((*keys, *made))}" if shown else ""
    return Selection(" ".join(heads), (*shown, *named), f"{tail} {draw(_having(names))}")


def _having(names: tuple[str, ...]) -> Texts:
    tests = st.tuples(_aggregates(names), st.sampled_from((">", "=", "<", "!=")))
    return st.one_of(st.just(""), st.just(""), tests.map(lambda given: f"HAVING ({given[0]} {given[1]} 1)"))


@st.composite
def _sliced(draw: st.DrawFn, names: tuple[str, ...], mark: str) -> Selection:
    """The first by their texts, whose order is total."""
    if not names:
        return Selection("*", ())
    of = draw(st.sampled_from(names))
    way = draw(st.sampled_from(("ASC", "DESC")))
    limit, offset = draw(st.sampled_from(range(1, 5))), draw(st.sampled_from(range(2)))
    return Selection(
        f"(STR({of}) AS ?m{mark})", (f"?m{mark}",), f"ORDER BY {way}(?m{mark}) LIMIT {limit} OFFSET {offset}"
    )


@st.composite
def _ordered(draw: st.DrawFn, chosen: Selection) -> Selection:
    if not chosen.names or draw(st.booleans()):
        return chosen
    keys = draw(st.lists(st.sampled_from(chosen.names), unique=True, min_size=1, max_size=2))
    order = tuple((key, draw(st.booleans())) for key in keys)
    spelled = " ".join(f"DESC({key})" if descending else key for key, descending in order)
    return Selection(chosen.head, chosen.names, f"{chosen.tail} ORDER BY {spelled}", order, chosen.reduced)
