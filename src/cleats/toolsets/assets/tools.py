"""The tools of the assets toolset.

Every tool is stateless and gives the same answer to the same arguments: files were read when the
server started. Each answers with the flat object that its clients have always known, `ok` first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import FLAT
from cleats.contract.tools import Context, Tool, Toolset
from cleats.settings import Settings
from cleats.system.tool_tables import ToolTable
from cleats.toolsets.assets import library, schema_names, sources
from cleats.toolsets.assets.backend import AssetBackend, create_backend
from cleats.toolsets.assets.patch import diff_values
from cleats.toolsets.assets.validation import AssetValidator

AssetArguments = Mapping[str, Any]
AssetPayload = dict[str, Any]

ALL_COMPONENTS: Final = frozenset({"", "all", "*"})
"""Values of `component` that mean all components."""


@dataclass(frozen=True, slots=True)
class AssetTools:
    """The tools over one snapshot."""

    files: library.AssetLibrary
    validator: AssetValidator
    backend: AssetBackend | None
    max_batch: int

    def build_tools(self) -> tuple[Tool, ...]:
        table = ToolTable(Path(__file__).parent)
        handlers: tuple[Any, ...] = (
            *(self.list_schemas, self.get_schema, self.list_examples, self.get_example),
            *(self.validate_asset, self.validate_many, self.diff_assets, self.populate_backend),
        )
        return tuple(
            table.make_tool(run.__name__, run, output=_make_answer_schema(table, run.__name__), payload=FLAT)
            for run in handlers
        )

    async def list_schemas(self, _args: AssetArguments, _context: Context) -> AssetPayload:
        rows = [
            {"name": schema.name, "version": schema.version, "path": schema.path}
            for schema in self.files.schemas.values()
        ]
        return {"ok": True, "schemas": sorted(rows, key=lambda row: tuple(row.values()))}

    async def get_schema(self, args: AssetArguments, _context: Context) -> AssetPayload:
        schema_file = self.files.schemas.get(args["name"])
        if schema_file is None:
            raise ToolError(ErrorCode.NOT_FOUND, f"unknown schema {args['name']!r}")
        return {"ok": True, "schema": schema_file.document, "version": schema_file.version}

    async def list_examples(self, args: AssetArguments, _context: Context) -> AssetPayload:
        component = (args["component"] or "").strip()
        rows = [
            {"component": example.schema, "path": example.path}
            for example in self.files.examples.values()
            if component in ALL_COMPONENTS or component in (example.schema, schema_names.get_stem(example.path))
        ]
        return {"ok": True, "examples": sorted(rows, key=lambda row: tuple(row.values()))}

    async def get_example(self, args: AssetArguments, _context: Context) -> AssetPayload:
        asset_example = self.files.find_example(args["path"])
        if asset_example is None:
            raise ToolError(ErrorCode.NOT_FOUND, "no example has this path")
        example = asset_example.parse()
        validated = self.validator.validate(example, asset_example.schema)["ok"]
        return {"ok": True, "example": example, "schema": asset_example.schema, "validated": validated}

    async def validate_asset(self, args: AssetArguments, _context: Context) -> AssetPayload:
        return self.validator.validate(args["asset"], args["schema"])

    async def validate_many(self, args: AssetArguments, context: Context) -> AssetPayload:
        assets, schema = args["assets"], args["schema"]
        if len(assets) > self.max_batch:
            too_large = {"ok": False, "reason": "unsupported", "detail": "batch_too_large"}
            return {**too_large, "limit": self.max_batch}
        if (failure := self.validator.check_schema(schema)) is not None:
            return failure
        results = []
        for number, asset in enumerate(assets):
            context.progress("validating", done=number, total=len(assets))
            results.append(self.validator.validate(asset, schema))
        if all(result["ok"] for result in results):
            return {"ok": True, "results": results}
        return {"ok": False, "reason": "validation_failed", "results": results}

    async def diff_assets(self, args: AssetArguments, _context: Context) -> AssetPayload:
        return {"ok": True, "patch": diff_values(args["base"], args["new"])}

    async def populate_backend(self, args: AssetArguments, _context: Context) -> AssetPayload:
        if self.backend is None:
            return {"ok": False, "reason": "unsupported", "detail": "backend disabled"}
        asset = args["asset"]
        if args["validate_first"]:
            verdict = self.validator.validate(asset, schema_names.read_marker(asset) or schema_names.FALLBACK_SCHEMA)
            if not verdict["ok"]:
                return verdict
        return await self.backend.post(asset)


def _make_answer_schema(table: ToolTable, name: str) -> dict[str, Any]:
    """Make the schema of a flat answer: `ok` with the fields of a tool, or a failure with a reason.

    Answers stay open: a client that validates must not break on the optional field that a minor version adds. The
    reasons are named in the description and not as an `enum`, because the server itself adds some, such as
    `tool_timeout`.
    """
    row = table.read_row(name)
    reasons = ", ".join(f"`{reason}`" for reason in row["reasons"])
    return {
        "type": "object",
        "required": ["ok"],
        "properties": {
            "ok": {"type": "boolean"},
            **row["fields"],
            "reason": {"type": "string", "description": f"Why not: {reasons}." if reasons else "Why not."},
            "errors": table.get_schema("errors"),
            "detail": table.get_schema("text"),
            **row.get("failure_fields", {}),
        },
        "oneOf": [
            {"properties": {"ok": {"const": True}}, "required": list(row["fields"])},
            {"properties": {"ok": {"const": False}}, "required": ["reason"]},
        ],
    }


def load_assets(settings: Settings) -> AssetTools:
    """Read the files and compile the schemas.

    Raises:
        SettingError: A configured folder does not exist, or the backend's URL is invalid.
    """
    asset_sources = sources.locate_sources(settings)
    files = library.read_library(asset_sources)
    validator = AssetValidator(files.schemas, asset_sources.schemas)
    return AssetTools(files, validator, create_backend(settings), settings.assets.max_batch)


def toolset(settings: Settings) -> Toolset:
    """Return the toolset over the configured files."""
    return Toolset(
        name="assets",
        purpose="Serve schemas and examples; validate, compare and publish assets.",
        tools=load_assets(settings).build_tools(),
    )
