"""A change between two schemas, before its side gives it a rule."""

from dataclasses import dataclass
from enum import StrEnum, auto


class Kind(StrEnum):
    """What a change is, before its side gives it a rule."""

    PROPERTY_ADDED = auto()
    PROPERTY_REMOVED = auto()
    PROPERTY_RENAMED = auto()
    REQUIRED_ADDED = auto()
    REQUIRED_REMOVED = auto()
    TYPE_CHANGED = auto()
    NARROWED = auto()
    WIDENED = auto()
    REWRITTEN = auto()
    DEFAULT_CHANGED = auto()
    MEANING_CHANGED = auto()
    DOCS_CHANGED = auto()
    UNDECIDED = auto()
    UNKNOWN_KEYWORD = auto()


@dataclass(frozen=True, slots=True)
class Change:
    """A change at a place in a schema; `name` is the property it is about."""

    kind: Kind
    pointer: str
    message: str
    name: str | None = None
