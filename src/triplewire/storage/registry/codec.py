"""Registry entries as dataclasses: a codec per kind, and the names that resources may have."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import partial
from typing import Any, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

from triplewire.model.errors import BadRequest
from triplewire.model.events import STREAM_NAME, STREAM_NAME_CHARACTERS
from triplewire.storage.registry.ports import RegistryChange

T = TypeVar("T")


class EntryCodec(Generic[T]):
    """Converts between a frozen dataclass and the JSON value of a registry entry.

    Fields that have their default are not stored. Enumerations, tuples, bytes and nested dataclasses are converted by
    the types of the fields.
    """

    def __init__(self, entry: type[T], key: str, position: str | None = None, without: Collection[str] = ()) -> None:
        """`key` and `position` name the fields that the entry's key and position fill; `without` is not stored."""
        self._make = entry
        self._key = key
        self._position = position
        stored: list[Field[Any]] = [
            each for each in fields(cast(Any, entry)) if each.name not in (key, position, *without)
        ]
        hints = get_type_hints(entry)
        self._defaults = {each.name: _default(each) for each in stored}
        self._encoders = {each.name: found for each in stored if (found := _encoder(hints[each.name])) is not None}
        self._decoders = {each.name: found for each in stored if (found := _decoder(hints[each.name])) is not None}

    def to_value(self, entry: T) -> dict[str, Any]:
        """The value to store under the entry's key."""
        value, held = {}, vars(entry)
        for name, default in self._defaults.items():
            field = held[name]
            if field is not default and field != default:
                value[name] = self._encoders[name](field) if name in self._encoders else field
        return value

    def from_change(self, change: RegistryChange) -> T:
        """The entry that a change has set. Raises ValueError for a removal."""
        if change.value is None:
            raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
        values = dict(change.value)
        for name, decode in self._decoders.items():
            if (value := values.get(name)) is not None:
                values[name] = decode(value)
        values[self._key] = change.key
        if self._position is not None:
            values[self._position] = change.position
        return self._make(**values)


def check_name(text: str, resource: str) -> str:
    """Return the name of a resource. Raises BadRequest for one that would have to be escaped in a URL, or is too long.

    `resource` says of what, with its article, for the message.
    """
    if len(text) > STREAM_NAME_CHARACTERS:
        raise BadRequest(f"the name of {resource} has at most {STREAM_NAME_CHARACTERS} characters, not {len(text)}")
    if not STREAM_NAME.fullmatch(text):
        raise BadRequest(
            f"{text!r} is not a valid name of {resource}: it must consist of letters, digits and . _ ~ -, and begin "
            "with a letter or digit"
        )
    return text


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _encoder(hint: Any) -> Callable[[Any], Any] | None:  # noqa: ANN401 - any type of field
    """The function that converts values of a type to JSON; None where JSON has them as they are."""
    if hint is bytes:
        return bytes.hex
    return vars if any(is_dataclass(each) for each in (hint, *get_args(hint))) else None


def _decoder(hint: Any) -> Callable[[Any], Any] | None:  # noqa: ANN401 - any type of field
    """The function that restores values of a type from JSON; None where JSON has them as they are."""
    if hint is bytes:
        return bytes.fromhex
    for each in (hint, *(get_args(hint) if get_origin(hint) is not tuple else ())):
        if get_origin(each) is tuple:
            return _freeze
        if isinstance(each, type) and issubclass(each, Enum):
            return each
        if isinstance(each, type) and is_dataclass(each):
            return partial(_decode_nested, each)
    return None


def _decode_nested(entry: Callable[..., Any], value: dict[str, Any]) -> Any:  # noqa: ANN401 - any dataclass
    return entry(**{name: _freeze(each) for name, each in value.items()})


def _freeze(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return tuple(map(_freeze, value)) if isinstance(value, list | tuple) else value
