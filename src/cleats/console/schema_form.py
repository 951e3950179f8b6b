"""A form for any tool, made from the schema of its arguments; and the arguments, read from the form."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from cleats.console.caller_console import FormFields
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Tool

FIELD_PREFIX: Final = "arg."
"""The prefix of argument names in a form, so that none of them is one of the form's own fields."""

LONG_TEXT_CHARS: Final = 2000
"""The permitted length from which a text gets several lines."""

FieldKind = Literal["choice", "switch", "number", "text", "long", "list", "json"]


@dataclass(frozen=True, slots=True)
class FormField:
    """One argument as a field."""

    name: str
    kind: FieldKind
    description: str
    required: bool
    default: str
    value: str
    choices: Sequence[str] = ()
    minimum: float | None = None
    maximum: float | None = None
    is_whole: bool = False


def build_fields(tool: Tool, values: Mapping[str, str] | None = None) -> list[FormField]:
    """Return the fields of a tool, the required ones first; `values` are what a person has typed so far."""
    properties: Mapping[str, Mapping[str, Any]] = tool.input.get("properties", {})
    required = set(tool.input.get("required", ()))
    names = sorted(properties, key=lambda name: (name not in required, list(properties).index(name)))
    return [_build_field(name, properties[name], name in required, (values or {}).get(name, "")) for name in names]


def _build_field(name: str, schema: Mapping[str, Any], required: bool, value: str) -> FormField:
    kind = _choose_kind(schema)
    default = schema.get("default")
    return FormField(
        name=name,
        kind=kind,
        description=schema.get("description", ""),
        required=required,
        default="" if default is None else (default if isinstance(default, str) else json.dumps(default)),
        value=value,
        choices=[choice if isinstance(choice, str) else json.dumps(choice) for choice in schema.get("enum", ())],
        minimum=schema.get("minimum"),
        maximum=schema.get("maximum"),
        is_whole=schema.get("type") == "integer",
    )


def _choose_kind(schema: Mapping[str, Any]) -> FieldKind:  # noqa: PLR0911 - one return for each kind
    if "enum" in schema:
        return "choice"
    branches = [branch.get("type") for branch in schema.get("anyOf", ())]
    kind = schema.get("type")
    if kind == "boolean":
        return "switch"
    if kind in {"integer", "number"}:
        return "number"
    if kind == "string":
        return "long" if schema.get("maxLength", 0) > LONG_TEXT_CHARS else "text"
    if kind == "array" and schema.get("items", {}).get("type") == "string":
        return "list"
    if branches[:1] == ["string"] and "array" in branches:
        return "list"
    return "json"


def read_arguments(tool: Tool, form: FormFields) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arguments of a form, and the texts as they were typed.

    Raises:
        ToolError: INVALID_REQUEST, a field is not JSON or not a number.
    """
    arguments: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for field in build_fields(tool):
        text = form.get(FIELD_PREFIX + field.name)
        texts[field.name] = text
        if text.strip() or (text and field.kind in {"text", "long"}):
            arguments[field.name] = _parse_value(field, text)
    return arguments, texts


def _parse_value(field: FormField, text: str) -> Any:
    match field.kind:
        case "switch":
            return text == "true"
        case "list":
            return [line.strip() for line in text.splitlines() if line.strip()]
        case "number" | "json":
            try:
                return json.loads(text)
            except ValueError as error:
                raise ToolError(ErrorCode.INVALID_REQUEST, f"{field.name} is not valid JSON: {error}.") from None
        case _:
            return text.replace("\r\n", "\n")
