"""Who a record belongs to and how exposed it is: what a caller says besides the document."""

from collections.abc import Mapping
from typing import Any, Final

from cleats.toolsets.code.triage.records import Record
from cleats.toolsets.code.triage.values import line

OWN: Final = ("service", "env", "team", "owner", "repo")
EXPOSURE: Final = {
    "internetExposed": "internet_exposed",
    "publicEndpoint": "public_endpoint",
    "dataSensitivity": "data_sensitivity",
    "businessCriticality": "business_criticality",
    "compensatingControls": "compensating_controls",
}

_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 500}

META: Final[dict[str, Any]] = {
    "type": "object",
    "maxProperties": 50,
    "description": (
        "What to note on every record: whom it belongs to, how exposed it is, and labels of "
        "your own."
    ),
    "properties": {
        "service": _TEXT,
        "env": _TEXT,
        "team": _TEXT,
        "owner": _TEXT,
        "repo": _TEXT,
        "internetExposed": {"type": "boolean"},
        "publicEndpoint": _TEXT,
        "dataSensitivity": _TEXT,
        "businessCriticality": _TEXT,
        "compensatingControls": {"type": "array", "items": _TEXT, "maxItems": 50},
    },
    "propertyNames": {"minLength": 1, "maxLength": 100},
    "additionalProperties": {"type": ["string", "number", "boolean"], "maxLength": 500},
}
"""The argument `meta`."""


def route(record: Record, meta: Mapping[str, Any]) -> None:
    """Note what a caller said on a record."""
    for name, value in meta.items():
        if name in OWN:
            setattr(record, name, line(value))
        elif name in EXPOSURE:
            setattr(record.exposure, EXPOSURE[name], value)
        else:
            record.labels = {**record.labels, name: _label(value)}


def _label(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return line(value)
