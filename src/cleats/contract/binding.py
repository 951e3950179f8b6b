"""The arguments of a call: what is wrong with them, and what stands in for those not given."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final, TypeAlias

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.violations import Validator

Schema: TypeAlias = Mapping[str, Any]

RESERVED = "x-reserved"
"""A property with this keyword is named for the future and refused when it is set."""

_OR_NULL = ["integer", "null"]

_TOLD = 3
"""Violations that are put into words at once; all of them are in the details."""

_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("count", "k", "limit", "maxresults", "n", "num", "size"), "top"),
    **dict.fromkeys(("file", "filename", "filepath"), "path"),
    **dict.fromkeys(("pattern", "prompt", "question", "text"), "query"),
    **dict.fromkeys(("cwd", "directory", "folder", "project", "root", "workdir"), "repoPath"),
    "kind": "type",
    "symboltype": "type",
}
"""What callers write who know other tools, and what it is called here."""

_LONGEST = 100
"""Characters of a name that may be a slip; to compare longer ones takes long."""


class Binding:
    """The input schema of a tool, put to work."""

    def __init__(self, name: str, schema: Schema) -> None:
        self._name = name
        self._schema = schema
        self._properties: Mapping[str, Schema] = schema.get("properties", {})

    def bind(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Check raw arguments and fill in the schema's defaults.

        Raises:
            ToolError: INVALID_REQUEST with every violation in `details`.
        """
        found = [violation.as_json() for violation in self._validator.violations(arguments)]
        if self._reserved:
            found += [_refusal(name) for name in sorted(self._reserved & arguments.keys())]
        if found:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"{self._name}: {_summed(found)}",
                hint=self._advice(arguments),
                details=found,
            )
        bound = {**self._defaults, **arguments} if self._defaults else arguments
        floats = [name for name in self._whole if type(bound.get(name)) is float]
        return {**bound, **{name: int(bound[name]) for name in floats}} if floats else bound

    def _advice(self, arguments: Mapping[str, Any]) -> str:
        """What to write instead of names that are not there."""
        known = self._properties
        free = [name for name in known if name not in arguments]
        strange = [name for name in arguments if name not in known][:_TOLD]
        meant = [near for name in strange if (near := _known_as(name, free) or nearest(name, free))]
        asked = f"Did you mean {' and '.join(dict.fromkeys(meant))}? " if meant else ""
        return f"{asked}See the input schema of {self._name}."

    @cached_property
    def _validator(self) -> Validator:
        return Validator(self._schema)

    @cached_property
    def _defaults(self) -> Mapping[str, Any]:
        return {
            name: rule["default"] for name, rule in self._properties.items() if "default" in rule
        }

    @cached_property
    def _whole(self) -> tuple[str, ...]:
        """The arguments that are integers: JSON Schema counts 7.0 among them, Python does not."""
        kinds = {name: rule.get("type") for name, rule in self._properties.items()}
        return tuple(name for name, kind in kinds.items() if kind in ("integer", _OR_NULL))

    @cached_property
    def _reserved(self) -> frozenset[str]:
        return frozenset(name for name, rule in self._properties.items() if rule.get(RESERVED))


def _summed(found: Sequence[Mapping[str, Any]]) -> str:
    told = [f"{each['instancePath'] or 'the arguments'}: {each['message']}" for each in found]
    more = f" (and {len(told) - _TOLD} more)" if len(told) > _TOLD else ""
    return "; ".join(told[:_TOLD]) + more


def _known_as(name: str, free: Sequence[str]) -> str:
    meant = _ELSEWHERE.get(name[:_LONGEST].replace("_", "").lower(), "")
    return meant if meant in free else ""


def nearest(name: str, known: Sequence[str]) -> str:
    """The name that one begins or that is spelled like it; empty when there is none."""
    if len(name) > _LONGEST:
        return ""
    starts = [each for each in known if name and each.lower().startswith(name.lower())]
    lowered = {each.lower(): each for each in known}
    alike = [lowered[each] for each in get_close_matches(name.lower(), lowered, n=1)]
    return next(iter([*starts[:1], *alike]), "")


def _refusal(name: str) -> dict[str, str]:
    return {
        "instancePath": f"/{name}",
        "schemaPath": f"#/properties/{name}/{RESERVED}",
        "keyword": RESERVED,
        "message": f'"{name}" is reserved for the future and must not be set',
    }
