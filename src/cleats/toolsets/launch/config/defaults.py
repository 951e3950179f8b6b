"""Defaults out of a schema: the one place where they are written is the schema itself."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any


def filled(schema: Mapping[str, Any], given: Any) -> Any:
    """The value with the defaults of its schema, at every depth; the value itself is untouched."""
    if not isinstance(given, Mapping):
        return deepcopy(given)
    made = {name: deepcopy(value) for name, value in given.items()}
    for name, rule in schema.get("properties", {}).items():
        if name not in made and "default" in rule:
            made[name] = deepcopy(rule["default"])
        if name in made:
            made[name] = filled(rule, made[name])
    return made
