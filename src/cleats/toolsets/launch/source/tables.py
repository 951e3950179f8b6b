"""Files that hold one table, in TOML, JSON or YAML, as their names say. Nobody vouches for them."""

import json
import tomllib
from typing import Any

import yaml


def parse(name: str, text: str) -> dict[str, Any]:
    """The table; a file without a word holds an empty one.

    Raises:
        ValueError: it cannot be read, in one line.
    """
    if not text.strip():
        return {}
    try:
        table = _loaded(name, text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (LookupError, AttributeError):  # PyYAML, where a tag does not fit its value
        raise ValueError("a value is not of the kind that its tag names") from None
    except (ValueError, yaml.YAMLError) as wrong:
        raise ValueError(str(wrong).split("\n", 1)[0]) from None
    if not isinstance(table, dict):
        raise ValueError("it is no mapping")  # noqa: TRY004 - a wrong file, not a wrong argument
    return table


def _loaded(name: str, text: str) -> Any:
    if name.endswith(".toml"):
        return tomllib.loads(text)
    if name.endswith(".json"):
        return json.loads(text)
    return yaml.safe_load(text)
