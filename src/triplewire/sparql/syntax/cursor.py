"""The parser's cursor: the position in the token stream, prefixes, limits on nesting and counts, and postponed
refusals.

Also holds the values that all grammar rules share: an operator with the variables in scope after it, and a window
clause of RSP-QL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, TypeVar

from triplewire.model.errors import SparqlSyntax, TextPosition, Unsupported
from triplewire.sparql.algebra import Aggregate, Expression, Node, Operator, Var
from triplewire.sparql.syntax.lexer import SourceSpan, SourceText, Token

QUERY_NESTING: Final = 64
"""Levels of a query: groups, operators and expressions inside one another. Parser and compiler follow them by calls,
at most some ten for each; a thousand overflow the stack."""

EXPRESSION_TERMS: Final = 10_000
"""Variables, constants and calls in the expressions of one query. Each may become a kilobyte of SQL."""


@dataclass(frozen=True)
class ScopedOperator:
    """A translated group: as a whole, and `bare`, without `conditions`, the filters directly in it.

    `names` are the variables in scope after it, in reading order, without blank nodes.
    """

    whole: Operator
    names: tuple[str, ...]
    bare: Operator
    conditions: tuple[Expression, ...] = ()


def visible_names(nodes: Iterable[Node | None]) -> list[str]:
    """The names of the variables among nodes that the text can name."""
    return [node.name for node in nodes if isinstance(node, Var) and not node.name.startswith("_:")]


WindowKind: TypeAlias = Literal["time", "count", "session"]


@dataclass(frozen=True)
class WindowClause:
    """A window over one stream: of time, in microseconds; of a number of triples; or of a session, which ends when
    nothing came for `range` microseconds.

    A new one opens after each `step`; the step of a session is its range. Equal to the range, windows tumble; smaller,
    they slide; larger, they leave gaps, and events in these are in no window.
    """

    name: str
    stream: str
    kind: WindowKind
    range: int
    step: int


_SURROGATE = re.compile("[\ud800-\udfff]")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class GrammarRules:
    """The grammar rules that call each other in a circle, injected because they are in several modules."""

    group: Callable[[Cursor], ScopedOperator]
    select: Callable[[Cursor], ScopedOperator]


@dataclass
class WindowDeclarations:
    """The windows that a text declares, each with its position, and those that it uses."""

    declared: dict[str, tuple[Token, WindowClause]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)


class Cursor:
    """A cursor over the tokens of one query, with declarations, counts and postponed refusals."""

    def __init__(
        self, text: str, base: str | None, rules: GrammarRules, windows: WindowDeclarations | None = None
    ) -> None:
        self._source = SourceText(text)
        self._tokens = self._source.tokens()
        self._fresh = 0
        self._depth = 0
        self._counts: dict[str, int] = {}
        self._heights: dict[int, tuple[object, int]] = {}
        self.rules = rules
        self.base = base
        self.prefixes: dict[str, str] = {}
        self.prologue = ""
        """Base and prefixes as text, for SERVICE."""
        self.iris: dict[tuple[str, str | None], str] = {}
        """A cache of resolved IRIs, by base and text."""
        self.blocks: dict[str, int] = {}
        """Blank node labels, each with the basic graph pattern in which it was seen."""
        self.aggregates: dict[Aggregate, str] | None = None
        """The aggregates of this SELECT with their variables; None where aggregates are not allowed."""
        self.windows = windows
        """The windows of a continuous query; None in other queries."""
        self._span_tokens: dict[str, Token] = {}
        self.refusal: Unsupported | None = None
        """A refusal that is raised once the whole text has parsed."""
        self.last = Token("end", "", 0)
        """The token that was taken last."""
        self._check_characters()
        self.token = next(self._tokens)
        self.following = next(self._tokens, self.token)
        self._check()

    def position(self, token: Token | None = None) -> TextPosition:
        return self._source.position((token or self.token).offset)

    def since(self, first: Token) -> str:
        """The text from a token to the one that was taken last."""
        return self._source.text[first.offset : self.last.end]

    def fresh(self) -> int:
        """Return a number that was not returned before."""
        self._fresh += 1
        return self._fresh

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Enter one level of nesting. Raises Unsupported at the token that is too deep."""
        if self._depth >= QUERY_NESTING:
            raise self._too_deep()
        self._depth += 1
        yield
        self._depth -= 1

    def check_height(self, made: _Made, *below: object) -> _Made:
        """Return the result, once its tree over the parts is known not to be too high. Chains lean to the left, so a
        tree may be high without nested text."""
        height = 1 + max((self._heights[id(each)][1] for each in below if id(each) in self._heights), default=0)
        if height > QUERY_NESTING:
            raise self._too_deep()
        # keeping the object keeps its number from being given to another
        self._heights[id(made)] = made, height
        return made

    def count_term(self) -> None:
        """Count a variable, constant or call in an expression, or in the place of one."""
        self.count("terms in expressions", EXPRESSION_TERMS)

    def count(self, what: str, limit: int, more: int = 1, token: Token | None = None) -> None:
        """Count items against a limit of the query."""
        self._counts[what] = self._counts.get(what, 0) + more
        if self._counts[what] > limit:
            raise self.unsupported(f"more than {limit} {what}", token)

    def take(self) -> Token:
        self.last = token = self.token
        if token.kind != "end":
            self.token = self.following
            self.following = next(self._tokens, self.token)
            if self.token.kind == "bad":
                self._check()
        return token

    def split_token(self) -> None:
        """Split a token that starts with `<` after it: where no triple can be, `?a<<urn:b>` has none."""
        offset = self.token.offset
        self._tokens = self._source.tokens(offset + 1)
        self.token, self.following = Token("mark", "<", offset, "<"), next(self._tokens)

    def at(self, *keys: str) -> bool:
        """Tell whether the token is one of these marks or keywords (in upper case)."""
        return self.token.key in keys

    def accept(self, *keys: str) -> Token | None:
        return self.take() if self.token.key in keys else None

    def expect(self, *keys: str) -> Token:
        if self.token.key not in keys:
            raise self.syntax_error(" or ".join(f"`{key}`" for key in keys))
        return self.take()

    def expect_kind(self, kind: str, what: str) -> Token:
        if self.token.kind != kind:
            raise self.syntax_error(what)
        return self.take()

    def expect_end(self, what: str) -> None:
        """Raises SparqlSyntax if there is more text, and a postponed refusal."""
        if self.token.kind != "end":
            raise self.syntax_error(f"the end of the {what}")
        if self.refusal is not None:
            raise self.refusal

    def syntax_error(self, expected: str, token: Token | None = None) -> SparqlSyntax:
        """The error for a token that does not fit here."""
        token = token or self.token
        found = "the end of the text" if token.kind == "end" else f"`{token.text[:40]}`"
        return self._error(f"expected {expected}, found {found} at", token)

    def unsupported(self, construct: str, token: Token | None = None, hint: str = "") -> Unsupported:
        token = token or self.token
        excerpt = self._source.excerpt(token.offset)
        return Unsupported(construct, place=self.position(token), hint=hint, excerpt=excerpt)

    def refuse(self, construct: str, token: Token | None = None, hint: str = "") -> None:
        """Postpone a refusal until the text has parsed: syntax errors come first."""
        if self.refusal is None:
            self.refusal = self.unsupported(construct, token, hint)

    def record_span(self, construct: str, token: Token | None = None) -> None:
        """Record where a construct stands first, for later refusals."""
        self._span_tokens.setdefault(construct, token or self.token)

    @property
    def spans(self) -> tuple[SourceSpan, ...]:
        return tuple(
            SourceSpan(construct, self.position(token), self._source.excerpt(token.offset))
            for construct, token in self._span_tokens.items()
        )

    def _too_deep(self) -> Unsupported:
        return self.unsupported(f"nesting deeper than {QUERY_NESTING}")

    def _check(self) -> None:
        if self.token.kind == "bad":
            raise self._error(f"{self.token.text!r} begins no SPARQL token at", self.token)

    def _check_characters(self) -> None:
        if lone := _SURROGATE.search(self._source.text):
            raise self._error("half of a surrogate pair is no character:", Token("bad", "", lone.start()))

    def _error(self, message: str, token: Token) -> SparqlSyntax:
        position = self.position(token)
        return SparqlSyntax(f"{message} {position}", place=position, excerpt=self._source.excerpt(token.offset))
