"""The cursor: where the parser is in the text, and what the text has declared so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from triplewire.config import limits
from triplewire.errors import Place, SparqlSyntax, Unsupported
from triplewire.sparql.syntax.tokens import Source, Token


class Cursor:
    """Moves over the tokens of one query. Holds prefixes, base, and the blocks in which blank labels were seen."""

    def __init__(self, text: str) -> None:
        self._source = Source(text)
        self._index = 0
        self._fresh = 0
        self._depth = 0
        self._terms = 0
        self.prefixes: dict[str, str] = {}
        self.base: str | None = None
        self.blocks: dict[str, int] = {}

    @property
    def token(self) -> Token:
        return self._source.tokens[self._index]

    @property
    def following(self) -> Token:
        """The token after this one; at the end, the end."""
        return self._source.tokens[min(self._index + 1, len(self._source.tokens) - 1)]

    def place(self, token: Token | None = None) -> Place:
        return self._source.place((token or self.token).offset)

    def fresh(self) -> int:
        """A number that was not given before."""
        self._fresh += 1
        return self._fresh

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One level deeper; too deep is refused at the token that would be."""
        if self._depth >= limits.QUERY_NESTING:
            raise self.unsupported(f"nesting deeper than {limits.QUERY_NESTING}")
        self._depth += 1
        yield
        self._depth -= 1

    def count_term(self) -> None:
        """One more term of an expression."""
        self._terms += 1
        if self._terms > limits.EXPRESSION_TERMS:
            raise self.unsupported(f"more than {limits.EXPRESSION_TERMS} terms in filters")

    def take(self) -> Token:
        token = self.token
        if token.kind != "end":
            self._index += 1
        return token

    def at(self, *texts: str) -> bool:
        """Is the token one of these marks, or one of these keywords (in upper case)?"""
        token = self.token
        return token.word in texts if token.kind == "word" else token.kind == "mark" and token.text in texts

    def accept(self, *texts: str) -> Token | None:
        return self.take() if self.at(*texts) else None

    def expect(self, *texts: str) -> Token:
        if not self.at(*texts):
            raise self.wrong(" or ".join(f"`{text}`" for text in texts))
        return self.take()

    def expect_kind(self, kind: str, what: str) -> Token:
        if self.token.kind != kind:
            raise self.wrong(what)
        return self.take()

    def wrong(self, expected: str, token: Token | None = None) -> SparqlSyntax:
        """The error for a token that does not fit here."""
        token = token or self.token
        found = "the end of the text" if token.kind == "end" else f"`{token.text[:40]}`"
        place = self.place(token)
        return SparqlSyntax(f"expected {expected}, found {found} at {place}", place=place)

    def unsupported(self, construct: str, token: Token | None = None, hint: str = "") -> Unsupported:
        return Unsupported(construct, place=self.place(token), hint=hint)
