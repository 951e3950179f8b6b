"""What is wrong with an instance, in words that do not change when a library does.

The validator finds the violations; the wording is ours, one line a keyword, because the text of
every JSON Schema library drifts from release to release and ours is part of answers that people
compare.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import jsonschema_rs
import msgspec

from cleats.contract.pointer import pointer

SHOWN = 80
"""Characters of a value that a message quotes; the whole of it is in the caller's hands already."""


LISTED = 1000
"""Violations that are listed; nobody reads more, and a hundred thousand keep a server busy."""

LARGE = 20_000
"""Values inside an instance beyond which only the first violation is looked for: the library finds
one or all, and all take it a second for every forty thousand."""


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """One broken rule. Ordered by where, then by which keyword, then by the words."""

    path: str
    keyword: str
    message: str
    schema_path: str

    def as_json(self) -> dict[str, str]:
        """The names that Ajv made common."""
        return {
            "instancePath": self.path,
            "schemaPath": "#" + self.schema_path,
            "keyword": self.keyword,
            "message": self.message,
        }


def mistyped(name: str, message: str) -> Violation:
    """A property that has another type than it should, where no schema is asked."""
    at = pointer([name])
    return Violation(at, "type", message, f"/properties{at}/type")


_TOO_DEEP = "Recursion limit reached"
"""What the library says of a value of more than 255 levels."""

_MORE = Violation("", "limit", "there may be more violations; they are not listed", "")


class Validator:
    """A schema (draft 2020-12), compiled once. Safe to share between threads.

    A `$ref` is resolved inside the schema and its registry and never over the network.
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | bool,
        *,
        registry: jsonschema_rs.Registry | None = None,
        base_uri: str | None = None,
    ) -> None:
        self._compiled = jsonschema_rs.Draft202012Validator(
            schema if isinstance(schema, bool) else dict(schema),
            registry=registry,
            base_uri=base_uri,
            offline=True,
        )

    def violations(self, instance: object) -> list[Violation]:
        """Every violation in a fixed order; empty when the instance is valid.

        Where there are too many, some of them, and one that says so.
        """
        try:
            if self._compiled.is_valid(instance):  # an order of magnitude cheaper than listing
                return []
            large = _is_large(instance)
            errors = self._first(instance) if large else self._compiled.iter_errors(instance)
        except ValueError as error:
            if str(error) != _TOO_DEEP:
                raise  # no value of JSON
            return [Violation("", "depth", "nested too deeply", "")]
        found = set(islice(_spread(errors, instance), LISTED + 1))
        listed = sorted(found)[:LISTED]
        return [*listed, _MORE] if large or len(found) > LISTED else listed

    def _first(self, instance: object) -> list[Any]:
        try:
            self._compiled.validate(instance)
        except jsonschema_rs.ValidationError as error:
            return [error]
        return []


def worded(error: jsonschema_rs.ValidationError) -> Violation:
    """One error of the library, in our words."""
    return next(_spread([error]))


def _is_large(instance: object) -> bool:
    """Whether a value has more parts than the violations of all of them could be listed for."""
    left, count = [instance], 0
    while left and count <= LARGE:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        count += 1
        if len(left) > LARGE:
            return True
    return count > LARGE


def _spread(errors: Any, root: object = None) -> Iterator[Violation]:
    """Word each error, and give every unexpected property a violation and a path of its own."""
    for error in errors:
        keyword: str = error.kind.name
        path = pointer(error.instance_path)
        schema_path = pointer(error.schema_path)
        facts: dict[str, Any] = error.kind.as_dict()
        unexpected = _unexpected(error, facts, root)
        if unexpected:
            keyword = error.schema_path[-1]
            for name in unexpected:
                where = path + pointer([name])
                message = f"unexpected property {quote(name)}"
                yield Violation(where, keyword, message, schema_path)
        elif keyword == "propertyNames":
            name = quote(facts["error"].instance)
            for inner in _spread([facts["error"]]):
                message = f"property name {name}: {inner.message}"
                yield Violation(path, keyword, message, schema_path)
        else:
            wording = _WORDING.get(keyword)
            message = wording(facts, error.instance) if wording else f"does not satisfy {keyword!r}"
            yield Violation(path, keyword, message, schema_path)


def _unexpected(error: Any, facts: Mapping[str, Any], root: object) -> Iterable[str]:
    """The properties that should not be there, when that is what an error is about."""
    if error.kind.name in {"additionalProperties", "unevaluatedProperties"}:
        names: Iterable[str] = facts["unexpected"]
        return names
    about_all = error.kind.name == "falseSchema" and error.schema_path[-1:] == [
        "additionalProperties"
    ]
    if about_all and root is not None:
        # Where nothing is allowed at all, the library names the first value and no property.
        for step in error.instance_path:
            root = root[step]  # type: ignore[index]
        if isinstance(root, dict) and root != error.instance:
            return root.keys()
    return ()


def quote(value: object) -> str:
    """A value as compact JSON with its keys in order, cut to a readable length."""
    try:
        text = msgspec.json.encode(value, order="sorted").decode()
    except (TypeError, ValueError, OverflowError):
        text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _count(number: object, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number} {noun if number == 1 else plural}"


_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


def _types(facts: Mapping[str, Any], _instance: object) -> str:
    names = sorted(facts["types"], key=_TYPES.index)
    return "expected " + " or ".join(names)


def _alternatives(facts: Mapping[str, Any], instance: object) -> str:
    context = facts.get("context", [])
    if any(not branch for branch in context):
        return "fits more than one of the alternatives, and exactly one is allowed"
    # The first in our order: the library's own may change with its next release.
    shortest = [min(_spread(branch)).message for branch in context]
    if len(set(shortest)) == len(shortest) and len(shortest) <= 4 and not _nested(context):
        return "fits none of the alternatives: " + "; ".join(shortest)
    return f"{quote(instance)} fits none of the alternatives"


def _nested(context: list[list[Any]]) -> bool:
    depth = min((len(e.instance_path) for branch in context for e in branch), default=0)
    return any(len(e.instance_path) > depth for branch in context for e in branch)


_Wording = Callable[[Mapping[str, Any], Any], str]

_WORDING: Mapping[str, _Wording] = {
    "type": _types,
    "required": lambda f, _: f"missing required property {quote(f['property'])}",
    "enum": lambda f, _: "expected one of " + ", ".join(quote(o) for o in f["options"]),
    "const": lambda f, _: f"expected {quote(f['expected_value'])}",
    "falseSchema": lambda _f, _: "nothing is allowed here",
    "minimum": lambda f, _: f"expected at least {quote(f['limit'])}",
    "maximum": lambda f, _: f"expected at most {quote(f['limit'])}",
    "exclusiveMinimum": lambda f, _: f"expected more than {quote(f['limit'])}",
    "exclusiveMaximum": lambda f, _: f"expected less than {quote(f['limit'])}",
    "multipleOf": lambda f, _: f"expected a multiple of {quote(f['multiple_of'])}",
    "minLength": lambda f, _: f"expected at least {_count(f['limit'], 'character')}",
    "maxLength": lambda f, _: f"expected at most {_count(f['limit'], 'character')}",
    "minItems": lambda f, _: f"expected at least {_count(f['limit'], 'item')}",
    "maxItems": lambda f, _: f"expected at most {_count(f['limit'], 'item')}",
    "minProperties": lambda f, _: f"expected at least {_count(f['limit'], 'property')}",
    "maxProperties": lambda f, _: f"expected at most {_count(f['limit'], 'property')}",
    "uniqueItems": lambda _f, _: "expected unique items",
    "contains": lambda _f, _: "too few or too many items of the required kind",
    "unevaluatedItems": lambda _f, _: "unexpected items at the end",
    "pattern": lambda f, _: f"expected to match {quote(f['pattern'])}",
    "format": lambda f, _: f"expected the format {quote(f['format'])}",
    "anyOf": _alternatives,
    "oneOf": _alternatives,
    "not": lambda _f, i: f"{quote(i)} is what must not be here",
}
