"""Schema violations, in wording that does not change when a library does.

The validator library finds the violations; the wording is ours, one line per keyword, because the messages of every
JSON Schema library drift from release to release and ours appear in answers that people compare.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import jsonschema_rs
import msgspec

from cleats.contract.pointer import join_pointer, split_pointer

MAX_QUOTED_CHARACTERS = 80
"""The part of a value that a message quotes; the caller has the full value anyway."""


MAX_LISTED_VIOLATIONS = 1000
"""Nobody reads more, and listing a hundred thousand keeps a server busy."""

MAX_FULLY_CHECKED_VALUES = 20_000
"""The number of values inside an instance beyond which only the first violation is searched for:
the library finds either one or all, and finding all takes a second per forty thousand values."""


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """One violated schema rule. Ordered by path, then by keyword, then by message."""

    path: str
    keyword: str
    message: str
    schema_path: str

    def as_json(self) -> dict[str, str]:
        """Return the violation under the field names that Ajv made common."""
        return {
            "instancePath": self.path,
            "schemaPath": "#" + self.schema_path,
            "keyword": self.keyword,
            "message": self.message,
        }


def make_type_violation(name: str, message: str) -> Violation:
    """Return the violation for a property of the wrong type, found without a schema."""
    path = join_pointer([name])
    return Violation(path, "type", message, f"/properties{path}/type")


_TOO_DEEP_MESSAGE = "Recursion limit reached"
"""The library's message for a value with more than 255 levels of nesting."""

_UNLISTED_VIOLATIONS = Violation("", "limit", "there may be more violations; they are not listed", "")


_VALIDATOR_CLASSES: Final[Mapping[str, Any]] = {
    "http://json-schema.org/draft-04/schema": jsonschema_rs.Draft4Validator,
    "http://json-schema.org/draft-06/schema": jsonschema_rs.Draft6Validator,
    "http://json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema_rs.Draft201909Validator,
    "https://json-schema.org/draft/2020-12/schema": jsonschema_rs.Draft202012Validator,
}

DIALECT_URIS: Final = frozenset(_VALIDATOR_CLASSES)
"""The drafts that a schema can declare by `$schema`, without the `#` that older ones end with."""

DRAFT_4_URI: Final = "http://json-schema.org/draft-04/schema"


def read_dialect(schema: object) -> str:
    """Return the draft that a schema declares; draft 2020-12 if it declares none or an unknown one."""
    declared = schema.get("$schema") if isinstance(schema, Mapping) else None
    uri = declared.removesuffix("#") if isinstance(declared, str) else ""
    return uri if uri in DIALECT_URIS else "https://json-schema.org/draft/2020-12/schema"


class Validator:
    """A schema, compiled once by the rules of the draft that it declares. Safe to share between threads.

    A `$ref` is resolved within the schema and its registry, never over the network.
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | bool,
        *,
        registry: jsonschema_rs.Registry | None = None,
        base_uri: str | None = None,
    ) -> None:
        validator_class = _VALIDATOR_CLASSES[read_dialect(schema)]
        document = schema if isinstance(schema, bool) else dict(schema)
        self._compiled = validator_class(document, registry=registry, base_uri=base_uri, offline=True)

    def find_violations(self, instance: object) -> list[Violation]:
        """Return every violation in a fixed order; the list is empty for a valid instance.

        If there are too many, return some of them and a last one that says so.
        """
        try:
            if self._compiled.is_valid(instance):  # an order of magnitude cheaper than listing
                return []
            is_large = _is_large(instance)
            errors = self._find_first_error(instance) if is_large else self._compiled.iter_errors(instance)
        except ValueError as error:
            if str(error) != _TOO_DEEP_MESSAGE:
                raise  # no value of JSON
            return [Violation("", "depth", "nested too deeply", "")]
        violations = set(islice(_convert_errors(errors, instance), MAX_LISTED_VIOLATIONS + 1))
        first_violations = sorted(violations)[:MAX_LISTED_VIOLATIONS]
        return (
            [*first_violations, _UNLISTED_VIOLATIONS]
            if is_large or len(violations) > MAX_LISTED_VIOLATIONS
            else first_violations
        )

    def _find_first_error(self, instance: object) -> list[Any]:
        try:
            self._compiled.validate(instance)
        except jsonschema_rs.ValidationError as error:
            return [error]
        return []


def convert_error(error: jsonschema_rs.ValidationError, root: object) -> Violation:
    """Convert one error of the library about a value to a violation."""
    return next(_convert_errors([error], root))


def _is_large(instance: object) -> bool:
    """Return True if a value has too many parts for all of their violations to be listed."""
    remaining_values, count = [instance], 0
    while remaining_values and count <= MAX_FULLY_CHECKED_VALUES:
        value = remaining_values.pop()
        if isinstance(value, dict):
            remaining_values.extend(value.values())
        elif isinstance(value, list):
            remaining_values.extend(value)
        count += 1
        if len(remaining_values) > MAX_FULLY_CHECKED_VALUES:
            return True
    return count > MAX_FULLY_CHECKED_VALUES


def _convert_errors(errors: Any, root: object = None) -> Iterator[Violation]:
    """Convert each error; every unexpected property gets a separate violation with its path."""
    has_odd_key, located = _has_odd_key(root), set[tuple[str, str, str]]()
    for error in errors:
        keyword: str = error.kind.name
        path = _locate_exactly(root, error, located) if has_odd_key else join_pointer(error.instance_path)
        schema_path = join_pointer(error.schema_path)
        facts: dict[str, Any] = error.kind.as_dict()
        if keyword == "required" and facts["property"] in error.instance:
            continue  # the library misses a required property that is not allowed; it is reported as unexpected
        unexpected_names = _find_unexpected_names(error, facts, root, path)
        if unexpected_names:
            keyword = error.schema_path[-1]
            for name in unexpected_names:
                property_path = path + join_pointer([name])
                message = f"unexpected property {quote_json(name)}"
                yield Violation(property_path, keyword, message, schema_path)
        elif keyword == "propertyNames":
            name = quote_json(facts["error"].instance)
            for inner_violation in _convert_errors([facts["error"]]):
                message = f"property name {name}: {inner_violation.message}"
                yield Violation(path, keyword, message, schema_path)
        else:
            format_message = _MESSAGE_FORMATTERS.get(keyword)
            message = format_message(facts, error.instance) if format_message else f"does not satisfy {keyword!r}"
            yield Violation(path, keyword, message, schema_path)


_ODD_KEY_PATTERN: Final = re.compile(r"|0[0-9]+|\+[0-9]+")
"""Keys that the library garbles in its paths: it drops the empty key and reads `007` and `+1` as numbers."""


def _has_odd_key(root: object) -> bool:
    remaining_values = [root]
    while remaining_values:
        value = remaining_values.pop()
        if isinstance(value, dict):
            if any(_ODD_KEY_PATTERN.fullmatch(key) for key in value):
                return True
            remaining_values.extend(value.values())
        elif isinstance(value, list):
            remaining_values.extend(value)
    return False


def _locate_exactly(root: Any, error: Any, located: set[tuple[str, str, str]]) -> str:
    """Return the pointer to the value of an error, with every key as it is.

    The text of an error has `["key"]` for each part of the pointer, as written there, and `[12]` for digits. A key may
    contain anything, also `"]["`; if a text has two meanings, the value decides, and of two errors with the same text
    each gets one.
    """
    pointers = []
    for parts in _iter_places(root, error.instance_path):
        names = [join_pointer([part])[1:] for part in parts]
        place = "".join(f"[{name}]" if re.fullmatch("[0-9]+", name) else f'["{name}"]' for name in names)
        if f"\n\nOn instance{place}:\n" in error.verbose_message:
            pointers.append(join_pointer(parts))
    pointers = [item for item in pointers if _resolve_pointer(root, item) == error.instance] or pointers
    keys = [(item, error.kind.name, error.message) for item in pointers or [join_pointer(error.instance_path)]]
    key = next((key for key in keys if key not in located), keys[0])
    located.add(key)
    return key[0]


def _iter_places(value: Any, parts: Sequence[str | int]) -> Iterator[tuple[str | int, ...]]:
    """Yield the places in a value that the library may mean by the parts of a path."""
    if not parts:
        yield ()
    if isinstance(value, dict):
        for key, item in value.items():
            if not key:
                yield from ((key, *rest) for rest in _iter_places(item, parts))
            elif parts and (key == parts[0] or re.fullmatch(rf"\+?0*{re.escape(str(parts[0]))}", key)):
                yield from ((key, *rest) for rest in _iter_places(item, parts[1:]))
    elif isinstance(value, list) and parts and isinstance(index := parts[0], int) and index < len(value):
        yield from ((index, *rest) for rest in _iter_places(value[index], parts[1:]))


def _resolve_pointer(root: Any, pointer: str) -> Any:
    for part in split_pointer(pointer):
        root = root[int(part)] if isinstance(root, list) else root[part]
    return root


def _find_unexpected_names(error: Any, facts: Mapping[str, Any], root: object, path: str) -> Iterable[str]:
    """Return the properties that should not be there, if the error is about such properties."""
    if error.kind.name in {"additionalProperties", "unevaluatedProperties"}:
        names: Iterable[str] = facts["unexpected"]
        return names
    forbids_everything = error.kind.name == "falseSchema" and error.schema_path[-1:] == ["additionalProperties"]
    if forbids_everything and root is not None:
        # If no property is allowed, the library reports the first value without its name.
        value = _resolve_pointer(root, path)
        if isinstance(value, dict) and value != error.instance:
            return value.keys()
    return ()


def quote_json(value: object) -> str:
    """Format a value as compact JSON with sorted keys, cut to a readable length."""
    try:
        text = msgspec.json.encode(value, order="sorted").decode()
    except (TypeError, ValueError, OverflowError):
        text = repr(value)
    return text if len(text) <= MAX_QUOTED_CHARACTERS else text[: MAX_QUOTED_CHARACTERS - 1] + "…"


def _format_count(number: object, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number} {noun if number == 1 else plural}"


_JSON_TYPE_ORDER = ("null", "boolean", "integer", "number", "string", "array", "object")


def _describe_types(facts: Mapping[str, Any], _instance: object) -> str:
    names = sorted(facts["types"], key=_JSON_TYPE_ORDER.index)
    return "expected " + " or ".join(names)


def _describe_alternatives(facts: Mapping[str, Any], instance: object) -> str:
    errors_by_branch = facts.get("context", [])
    if any(not errors for errors in errors_by_branch):
        return "fits more than one of the alternatives, and exactly one is allowed"
    # The first in our order: the order of the library may change with its next release.
    branches = [list(_convert_errors(errors)) for errors in errors_by_branch]
    first_messages = [min(violations).message for violations in branches if violations]
    if (
        len(set(first_messages)) == len(first_messages)
        and len(first_messages) <= 4
        and not _has_nested_errors(errors_by_branch)
    ):
        return "fits none of the alternatives: " + "; ".join(first_messages)
    return f"{quote_json(instance)} fits none of the alternatives"


def _has_nested_errors(errors_by_branch: list[list[Any]]) -> bool:
    depth = min((len(error.instance_path) for errors in errors_by_branch for error in errors), default=0)
    return any(len(error.instance_path) > depth for errors in errors_by_branch for error in errors)


_MessageFormatter = Callable[[Mapping[str, Any], Any], str]

_MESSAGE_FORMATTERS: Mapping[str, _MessageFormatter] = {
    "type": _describe_types,
    "required": lambda f, _: f"missing required property {quote_json(f['property'])}",
    "enum": lambda f, _: "expected one of " + ", ".join(quote_json(o) for o in f["options"]),
    "const": lambda f, _: f"expected {quote_json(f['expected_value'])}",
    "falseSchema": lambda _f, _: "nothing is allowed here",
    "minimum": lambda f, _: f"expected at least {quote_json(f['limit'])}",
    "maximum": lambda f, _: f"expected at most {quote_json(f['limit'])}",
    "exclusiveMinimum": lambda f, _: f"expected more than {quote_json(f['limit'])}",
    "exclusiveMaximum": lambda f, _: f"expected less than {quote_json(f['limit'])}",
    "multipleOf": lambda f, _: f"expected a multiple of {quote_json(f['multiple_of'])}",
    "minLength": lambda f, _: f"expected at least {_format_count(f['limit'], 'character')}",
    "maxLength": lambda f, _: f"expected at most {_format_count(f['limit'], 'character')}",
    "minItems": lambda f, _: f"expected at least {_format_count(f['limit'], 'item')}",
    "maxItems": lambda f, _: f"expected at most {_format_count(f['limit'], 'item')}",
    "minProperties": lambda f, _: f"expected at least {_format_count(f['limit'], 'property')}",
    "maxProperties": lambda f, _: f"expected at most {_format_count(f['limit'], 'property')}",
    "uniqueItems": lambda _f, _: "expected unique items",
    "contains": lambda _f, _: "too few or too many items of the required kind",
    "additionalItems": lambda _f, _: "unexpected items at the end",
    "unevaluatedItems": lambda _f, _: "unexpected items at the end",
    "pattern": lambda f, _: f"expected to match {quote_json(f['pattern'])}",
    "format": lambda f, _: f"expected the format {quote_json(f['format'])}",
    "anyOf": _describe_alternatives,
    "oneOf": _describe_alternatives,
    "not": lambda _f, i: f"{quote_json(i)} is what must not be here",
}
