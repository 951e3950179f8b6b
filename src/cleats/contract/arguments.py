"""Checking the arguments of a call, and filling in the defaults of missing ones.

Models and clients spell the same arguments in several ways. Before they are checked, `null` counts as absent, a
JSON-encoded array as an array where one is allowed, and an array as one text where a text takes several values.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.violations import Validator, Violation, make_type_violation

Schema: TypeAlias = Mapping[str, Any]

RESERVED_KEYWORD = "x-reserved"
"""A property with this keyword is reserved for the future and refused when it is set."""

_MAX_WORDED_VIOLATIONS = 3
"""The number of violations that the message describes; the details hold all of them."""

_ARGUMENT_SYNONYMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("count", "k", "limit", "maxresults", "n", "num", "size"), "top"),
    **dict.fromkeys(("file", "filename", "filepath"), "path"),
    **dict.fromkeys(("pattern", "prompt", "question", "text"), "query"),
    **dict.fromkeys(("cwd", "directory", "folder", "project", "root", "workdir"), "repoPath"),
    "kind": "type",
    "symboltype": "type",
}
"""Names that callers bring from other tools, and the names of the same arguments here."""

_MAX_NAME_CHARACTERS = 100
"""The longest name that is compared with others; comparing longer ones takes too long."""


class ArgumentBinder:
    """Checks arguments against the input schema of a tool and fills in its defaults."""

    def __init__(self, name: str, schema: Schema, list_arguments: Collection[str] = ()) -> None:
        """Use the input schema of a tool; `list_arguments` are texts that take several values, or an array."""
        self._name = name
        self._validator = Validator(schema)
        self._list_arguments = list_arguments
        properties: Mapping[str, Schema] = schema.get("properties", {})
        self._properties = properties
        self._defaults = {name: rule["default"] for name, rule in properties.items() if "default" in rule}
        # JSON Schema counts 7.0 as an integer, Python does not.
        integer_types = ("integer", ["integer", "null"])
        self._integer_names = [name for name, rule in properties.items() if rule.get("type") in integer_types]
        self._optional_names = frozenset(properties).difference(schema.get("required", ()))
        self._array_names = frozenset(name for name, rule in properties.items() if _allows_array(rule))
        self._reserved_names = frozenset(name for name, rule in properties.items() if rule.get(RESERVED_KEYWORD))

    def bind(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Check raw arguments and fill in the schema's defaults.

        Raises:
            ToolError: INVALID_REQUEST with every violation in `details`.
        """
        if self._array_names or self._list_arguments or None in arguments.values():
            arguments = self._normalize_arguments(arguments)
        violations = [violation.as_json() for violation in self._validator.find_violations(arguments)]
        for name in sorted(self._reserved_names & arguments.keys()) if self._reserved_names else ():
            message = f'"{name}" is reserved for the future and must not be set'
            schema_path = f"/properties/{name}/{RESERVED_KEYWORD}"
            violations.append(Violation(f"/{name}", RESERVED_KEYWORD, message, schema_path).as_json())
        if violations:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"{self._name}: {_summarize_violations(violations)}",
                hint=self._suggest_arguments(arguments),
                details=violations,
            )
        bound = {**self._defaults, **arguments} if self._defaults else arguments
        float_names = [name for name in self._integer_names if type(bound.get(name)) is float]
        return {**bound, **{name: int(bound[name]) for name in float_names}} if float_names else bound

    def _normalize_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        normalized = {
            name: self._normalize_value(name, value)
            for name, value in arguments.items()
            if value is not None or name not in self._optional_names
        }
        return arguments if normalized == arguments else normalized

    def _normalize_value(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and name in self._array_names:
            return _parse_array(value)
        if isinstance(value, list) and name in self._list_arguments and all(isinstance(part, str) for part in value):
            return ",".join(value)
        return value

    def _suggest_arguments(self, arguments: Mapping[str, Any]) -> str:
        """Suggest arguments in place of unknown names."""
        properties = self._properties
        unused_names = [name for name in properties if name not in arguments]
        unknown_names = [name for name in arguments if name not in properties][:_MAX_WORDED_VIOLATIONS]
        suggestions = [
            suggestion
            for name in unknown_names
            if (suggestion := _find_synonym(name, unused_names) or find_nearest_name(name, unused_names))
        ]
        question = f"Did you mean {' and '.join(dict.fromkeys(suggestions))}? " if suggestions else ""
        return f"{question}See the input schema of {self._name}."


def make_type_error(name: str, expected: str) -> ToolError:
    """Return the error for an argument of the wrong type, found without a schema."""
    violation = make_type_violation(name, f"expected {expected}")
    message = f"{violation.path}: {violation.message}"
    return ToolError(ErrorCode.INVALID_REQUEST, message, details=[violation.as_json()])


def _allows_array(schema: Schema) -> bool:
    types = schema.get("type", ())
    return "array" in ([types] if isinstance(types, str) else types) or any(map(_allows_array, schema.get("anyOf", ())))


def _parse_array(text: str) -> Any:
    """Return the array that a text encodes as JSON, otherwise the text."""
    if not text.lstrip().startswith("["):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, list) else text


def _summarize_violations(violations: Sequence[Mapping[str, Any]]) -> str:
    sentences = [f"{violation['instancePath'] or 'the arguments'}: {violation['message']}" for violation in violations]
    remainder = (
        f" (and {len(sentences) - _MAX_WORDED_VIOLATIONS} more)" if len(sentences) > _MAX_WORDED_VIOLATIONS else ""
    )
    return "; ".join(sentences[:_MAX_WORDED_VIOLATIONS]) + remainder


def _find_synonym(name: str, unused_names: Sequence[str]) -> str:
    synonym = _ARGUMENT_SYNONYMS.get(name[:_MAX_NAME_CHARACTERS].replace("_", "").lower(), "")
    return synonym if synonym in unused_names else ""


def find_nearest_name(name: str, candidates: Sequence[str]) -> str:
    """Return the candidate that starts with `name` or is spelled like it, or an empty string."""
    if len(name) > _MAX_NAME_CHARACTERS:
        return ""
    completions = [candidate for candidate in candidates if name and candidate.lower().startswith(name.lower())]
    candidates_by_lower_name = {candidate.lower(): candidate for candidate in candidates}
    similar_names = [
        candidates_by_lower_name[candidate]
        for candidate in get_close_matches(name.lower(), candidates_by_lower_name, n=1)
    ]
    return next(iter([*completions[:1], *similar_names]), "")
