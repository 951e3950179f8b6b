"""Tools whose texts, limits, schemas and examples are in a `tools.json` beside their handlers.

A row has the fields of `Tool`, and `properties` and `required` instead of the input schema. A string such as `"$text"`
in the file refers to the schema of that name in its table `schemas`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from cleats.contract.errors import ErrorCode
from cleats.contract.tools import Alias, Handler, Hints, Tool, arguments


class ToolTable:
    """The rows of a `tools.json`."""

    def __init__(self, folder: Path, **schemas: Mapping[str, Any]) -> None:
        """Read the file in a folder; `schemas` are further schemas that it may refer to."""
        document = msgspec.json.decode((folder / "tools.json").read_bytes())
        self._schemas = {**document.get("schemas", {}), **schemas}
        self._rows: dict[str, dict[str, Any]] = document["tools"]

    def read_row(self, name: str) -> dict[str, Any]:
        """Return the row of a tool with its schemas filled in."""
        row: dict[str, Any] = self._fill_in(self._rows[name]) if self._schemas else self._rows[name]
        return row

    def get_schema(self, name: str) -> Any:
        """Return a schema of the file, with those that it refers to."""
        return self._fill_in(self._schemas[name])

    def make_tool(self, name: str, run: Handler, **fields: Any) -> Tool:
        """Make a tool of its row; `fields` are the fields of a tool that the row does not have."""
        row = self.read_row(name)
        texts = {key: row[key] for key in ("title", "description", "version", "timeout", "output") if key in row}
        return Tool(
            name=name,
            run=run,
            input=arguments(row.get("properties"), required=row.get("required", ())),
            errors=tuple(ErrorCode[code] for code in row.get("errors", ())),
            hints=Hints(**row.get("hints", {})),
            aliases=tuple(Alias(*alias) for alias in row.get("aliases", ())),
            examples=tuple(row.get("examples", ({"arguments": {}},))),
            **texts | fields,
        )

    def make_tools(self, handlers: Mapping[str, Handler], **fields: Any) -> tuple[Tool, ...]:
        """Make the tools of these handlers."""
        return tuple(self.make_tool(name, run, **fields) for name, run in handlers.items())

    def _fill_in(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("$") and value[1:] in self._schemas:
            return self.get_schema(value[1:])
        if isinstance(value, dict):
            return {key: self._fill_in(item) for key, item in value.items()}
        return [self._fill_in(item) for item in value] if isinstance(value, list) else value
