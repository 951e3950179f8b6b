"""The tools of the assets toolset.

Every tool is stateless and gives the same answer to the same arguments: files were read when the
server started. Each answers with the flat object that its clients have always known, `ok` first.
"""

from collections.abc import Mapping
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import FLAT
from cleats.contract.tools import Context, Hints, Tool, Toolset, arguments
from cleats.settings import Settings
from cleats.toolsets.assets import library, schema_names, sources, tool_schemas
from cleats.toolsets.assets.backend import AssetBackend, create_backend
from cleats.toolsets.assets.patch import diff_values
from cleats.toolsets.assets.validation import AssetValidator

AssetArguments = Mapping[str, Any]
AssetPayload = dict[str, Any]

TOOL_TIMEOUT_SECONDS: Final = 30.0
"""The time limit of a call. Everything but publishing is memory and CPU; publishing has its own
limit of five seconds."""

ALL_COMPONENTS: Final = frozenset({"", "all", "*"})
"""Values of `component` that mean all components."""


class AssetTools:
    """The tools over one snapshot."""

    def __init__(
        self,
        files: library.AssetLibrary,
        validator: AssetValidator,
        asset_backend: AssetBackend | None,
        *,
        max_batch: int,
    ) -> None:
        self.files = files
        self.validator = validator
        self.backend = asset_backend
        self._max_batch = max_batch

    def build_tools(self) -> tuple[Tool, ...]:
        return (
            _build_tool(
                self.list_schemas,
                "List schemas",
                "List the JSON Schemas that are served: name, version and path of each.",
                arguments(),
                tool_schemas.answer_schema(
                    {
                        "schemas": tool_schemas.listing_schema(
                            name=tool_schemas.TEXT_SCHEMA,
                            version=tool_schemas.TEXT_SCHEMA,
                            path=tool_schemas.TEXT_SCHEMA,
                        )
                    },
                    reasons=(),
                ),
            ),
            _build_tool(
                self.get_schema,
                "Get a schema",
                "Get one JSON Schema by the name that list_schemas gives, as it is on disk.",
                arguments({"name": _NAME_SCHEMA}, required=("name",)),
                tool_schemas.answer_schema(
                    {"schema": {"type": "object"}, "version": tool_schemas.TEXT_SCHEMA},
                    reasons=("not_found", "validation_failed"),
                ),
                errors=(ErrorCode.NOT_FOUND,),
                example={"name": "synesthetic-asset"},
            ),
            _build_tool(
                self.list_examples,
                "List examples",
                "List example assets: the component (schema) each is for, and its path.",
                arguments({"component": _COMPONENT_SCHEMA}),
                tool_schemas.answer_schema(
                    {
                        "examples": tool_schemas.listing_schema(
                            component=tool_schemas.TEXT_SCHEMA, path=tool_schemas.TEXT_SCHEMA
                        )
                    },
                    reasons=(),
                ),
                example={"component": "all"},
            ),
            _build_tool(
                self.get_example,
                "Get an example",
                "Get one example by a path that list_examples gives, the schema it is for, and "
                "whether it validates against that schema now.",
                arguments({"path": _PATH_SCHEMA}, required=("path",)),
                tool_schemas.answer_schema(
                    {"example": {}, "schema": tool_schemas.TEXT_SCHEMA, "validated": {"type": "boolean"}},
                    reasons=("not_found", "validation_failed"),
                ),
                errors=(ErrorCode.NOT_FOUND,),
                example={"path": "Tone_Example.json"},
            ),
            _build_tool(
                self.validate_asset,
                "Validate an asset",
                "Check an asset against a schema (JSON Schema draft 2020-12) and list every "
                "violation with its JSON Pointer. A top-level $schemaRef or $schema is ignored.",
                arguments(
                    {"asset": tool_schemas.ASSET_SCHEMA, "schema": tool_schemas.SCHEMA_NAME_SCHEMA},
                    required=("asset", "schema"),
                ),
                tool_schemas.answer_schema({"errors": tool_schemas.ERRORS_SCHEMA}, reasons=("validation_failed",)),
                example={"asset": {"name": "lead"}, "schema": "tone"},
            ),
            _build_tool(
                self.validate_many,
                "Validate many assets",
                "Check many assets against one schema (100 at once unless the server says "
                "otherwise); results are in the order of the assets, each as validate_asset "
                "answers.",
                arguments(
                    {
                        "assets": {"type": "array", "items": tool_schemas.ASSET_SCHEMA},
                        "schema": tool_schemas.SCHEMA_NAME_SCHEMA,
                    },
                    required=("assets", "schema"),
                ),
                tool_schemas.answer_schema(
                    {"results": {"type": "array", "items": tool_schemas.VERDICT_SCHEMA}},
                    reasons=("validation_failed", "unsupported"),
                    failure={"limit": {"type": "integer"}},
                ),
                example={"assets": [{"name": "lead"}, {"name": "bass"}], "schema": "tone"},
            ),
            _build_tool(
                self.diff_assets,
                "Diff two assets",
                "Give the JSON Patch (RFC 6902) that turns one asset into another: add, remove "
                "and replace, sorted by path, arrays replaced whole.",
                arguments(
                    {"base": tool_schemas.ASSET_SCHEMA, "new": tool_schemas.ASSET_SCHEMA}, required=("base", "new")
                ),
                tool_schemas.answer_schema({"patch": tool_schemas.PATCH_SCHEMA}, reasons=()),
                example={"base": {"gain": 1}, "new": {"gain": 2}},
            ),
            _build_tool(
                self.populate_backend,
                "Publish an asset",
                "Validate an asset and send it to the configured backend. The schema is the one "
                "that the asset names in `schema`, `$schemaRef` or `$schema`, else "
                f"{schema_names.FALLBACK_SCHEMA}.",
                arguments(
                    {"asset": tool_schemas.ASSET_SCHEMA, "validate_first": _VALIDATE_FIRST_SCHEMA}, required=("asset",)
                ),
                tool_schemas.answer_schema(
                    {"asset_id": tool_schemas.TEXT_SCHEMA, "backend_url": tool_schemas.TEXT_SCHEMA},
                    reasons=("validation_failed", "backend_error", "unsupported"),
                    failure={"status": {"type": "integer"}},
                ),
                hints=Hints(read_only=False, idempotent=False, open_world=True),
                example={"asset": {"$schemaRef": "jsonschema/tone.schema.json", "name": "lead"}},
            ),
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
            raise ToolError(ErrorCode.NOT_FOUND, f"no schema is called {args['name']!r}")
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
            raise ToolError(ErrorCode.NOT_FOUND, "there is no example with this path")
        example = asset_example.parse()
        validated = self.validator.validate(example, asset_example.schema)["ok"]
        return {"ok": True, "example": example, "schema": asset_example.schema, "validated": validated}

    async def validate_asset(self, args: AssetArguments, _context: Context) -> AssetPayload:
        return self.validator.validate(args["asset"], args["schema"])

    async def validate_many(self, args: AssetArguments, context: Context) -> AssetPayload:
        assets, schema = args["assets"], args["schema"]
        if len(assets) > self._max_batch:
            too_large = {"ok": False, "reason": "unsupported", "detail": "batch_too_large"}
            return {**too_large, "limit": self._max_batch}
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


_NAME_SCHEMA: Final = {"type": "string", "description": "Name of the schema, without a suffix."}
_PATH_SCHEMA: Final = {
    "type": "string",
    "description": "As list_examples gives it, or relative to the folder of the examples.",
}
_COMPONENT_SCHEMA: Final = {
    "anyOf": [{"type": "string"}, {"type": "null"}],
    "default": "all",
    "description": "Only examples of this schema, or whose file has this name; `all` for all.",
}
_VALIDATE_FIRST_SCHEMA: Final = {
    "type": "boolean",
    "default": True,
    "description": "Send the asset only when it is valid. Leave this on.",
}


def _build_tool(
    run: Any,
    title: str,
    description: str,
    input_schema: Mapping[str, Any],
    output: Mapping[str, Any],
    *,
    errors: tuple[ErrorCode, ...] = (),
    hints: Hints = Hints(),  # noqa: B008 - frozen
    example: Mapping[str, Any] | None = None,
) -> Tool:
    return Tool(
        name=run.__name__,
        version=2,
        title=title,
        description=description,
        input=input_schema,
        output=output,
        payload=FLAT,
        run=run,
        timeout=TOOL_TIMEOUT_SECONDS,
        errors=errors,
        hints=hints,
        examples=({"arguments": example or {}},),
    )


def load_assets(settings: Settings) -> AssetTools:
    """Read the files and compile the schemas.

    Raises:
        SettingError: A configured folder does not exist, or the backend's URL is invalid.
    """
    asset_sources = sources.locate_sources(settings)
    files = library.read_library(asset_sources)
    validator = AssetValidator(files.schemas, asset_sources.schemas)
    return AssetTools(files, validator, create_backend(settings), max_batch=settings.assets.max_batch)


def toolset(settings: Settings) -> Toolset:
    """Return the toolset over the configured files."""
    return Toolset(
        name="assets",
        purpose="Serve schemas and examples; validate, compare and publish assets.",
        tools=load_assets(settings).build_tools(),
    )
