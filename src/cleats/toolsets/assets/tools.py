"""The assets toolset's table of contents.

Every tool is stateless and gives the same answer to the same arguments: files were read when the
server started. Each answers with the flat object that its clients have always known, `ok` first.
"""

from collections.abc import Mapping
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import FLAT
from cleats.contract.tools import Context, Hints, Tool, Toolset, arguments
from cleats.settings import Settings
from cleats.toolsets.assets import library, naming, shapes, sources
from cleats.toolsets.assets.backend import Backend, backend
from cleats.toolsets.assets.patch import diff
from cleats.toolsets.assets.validation import Judge, failed

Arguments = Mapping[str, Any]
Body = dict[str, Any]

TIMEOUT: Final = 30.0
"""Seconds. Everything but publishing is memory and CPU; publishing has its own five."""

EVERY: Final = frozenset({"", "all", "*"})
"""Components that mean all of them."""


class Assets:
    """The tools over one snapshot."""

    def __init__(
        self, files: library.Library, judge: Judge, target: Backend | None, *, max_batch: int
    ) -> None:
        self.files = files
        self.judge = judge
        self.target = target
        self._max_batch = max_batch

    def tools(self) -> tuple[Tool, ...]:
        return (
            _tool(
                self.list_schemas,
                "List schemas",
                "List the JSON Schemas that are served: name, version and path of each.",
                arguments(),
                shapes.answer(
                    {
                        "schemas": shapes.listing(
                            name=shapes.TEXT, version=shapes.TEXT, path=shapes.TEXT
                        )
                    },
                    reasons=(),
                ),
            ),
            _tool(
                self.get_schema,
                "Get a schema",
                "Get one JSON Schema by the name that list_schemas gives, as it is on disk.",
                arguments({"name": _NAME}, required=("name",)),
                shapes.answer(
                    {"schema": {"type": "object"}, "version": shapes.TEXT},
                    reasons=("not_found", "validation_failed"),
                ),
                errors=(ErrorCode.NOT_FOUND,),
                example={"name": "synesthetic-asset"},
            ),
            _tool(
                self.list_examples,
                "List examples",
                "List example assets: the component (schema) each is for, and its path.",
                arguments({"component": _COMPONENT}),
                shapes.answer(
                    {"examples": shapes.listing(component=shapes.TEXT, path=shapes.TEXT)},
                    reasons=(),
                ),
                example={"component": "all"},
            ),
            _tool(
                self.get_example,
                "Get an example",
                "Get one example by a path that list_examples gives, the schema it is for, and "
                "whether it validates against that schema now.",
                arguments({"path": _PATH}, required=("path",)),
                shapes.answer(
                    {"example": {}, "schema": shapes.TEXT, "validated": {"type": "boolean"}},
                    reasons=("not_found", "validation_failed"),
                ),
                errors=(ErrorCode.NOT_FOUND,),
                example={"path": "Tone_Example.json"},
            ),
            _tool(
                self.validate_asset,
                "Validate an asset",
                "Check an asset against a schema (JSON Schema draft 2020-12) and list every "
                "violation with its JSON Pointer. A top-level $schemaRef or $schema is ignored.",
                arguments(
                    {"asset": shapes.ASSET, "schema": shapes.SCHEMA}, required=("asset", "schema")
                ),
                shapes.answer({"errors": shapes.ERRORS}, reasons=("validation_failed",)),
                example={"asset": {"name": "lead"}, "schema": "tone"},
            ),
            _tool(
                self.validate_many,
                "Validate many assets",
                "Check many assets against one schema (100 at once unless the server says "
                "otherwise); results are in the order of the assets, each as validate_asset "
                "answers.",
                arguments(
                    {"assets": {"type": "array", "items": shapes.ASSET}, "schema": shapes.SCHEMA},
                    required=("assets", "schema"),
                ),
                shapes.answer(
                    {"results": {"type": "array", "items": shapes.VERDICT}},
                    reasons=("validation_failed", "unsupported"),
                    failure={"limit": {"type": "integer"}},
                ),
                example={"assets": [{"name": "lead"}, {"name": "bass"}], "schema": "tone"},
            ),
            _tool(
                self.diff_assets,
                "Diff two assets",
                "Give the JSON Patch (RFC 6902) that turns one asset into another: add, remove "
                "and replace, sorted by path, arrays replaced whole.",
                arguments({"base": shapes.ASSET, "new": shapes.ASSET}, required=("base", "new")),
                shapes.answer({"patch": shapes.PATCH}, reasons=()),
                example={"base": {"gain": 1}, "new": {"gain": 2}},
            ),
            _tool(
                self.populate_backend,
                "Publish an asset",
                "Validate an asset and send it to the configured backend. The schema is the one "
                "that the asset names in `schema`, `$schemaRef` or `$schema`, else "
                f"{naming.FALLBACK}.",
                arguments(
                    {"asset": shapes.ASSET, "validate_first": _VALIDATE_FIRST}, required=("asset",)
                ),
                shapes.answer(
                    {"asset_id": shapes.TEXT, "backend_url": shapes.TEXT},
                    reasons=("validation_failed", "backend_error", "unsupported"),
                    failure={"status": {"type": "integer"}},
                ),
                hints=Hints(read_only=False, idempotent=False, open_world=True),
                example={"asset": {"$schemaRef": "jsonschema/tone.schema.json", "name": "lead"}},
            ),
        )

    async def list_schemas(self, _given: Arguments, _context: Context) -> Body:
        rows = [
            {"name": each.name, "version": each.version, "path": each.path}
            for each in self.files.schemas.values()
        ]
        return {"ok": True, "schemas": sorted(rows, key=lambda r: tuple(r.values()))}

    async def get_schema(self, given: Arguments, _context: Context) -> Body:
        name = given["name"]
        if not naming.is_plain(name):
            return failed(("/name", "invalid_path"))
        found = self.files.schemas.get(name)
        if found is None:
            raise ToolError(ErrorCode.NOT_FOUND, f"no schema is called {name!r}")
        return {"ok": True, "schema": found.document, "version": found.version}

    async def list_examples(self, given: Arguments, _context: Context) -> Body:
        wanted = (given["component"] or "").strip()
        rows = [
            {"component": each.schema, "path": each.path}
            for each in self.files.examples.values()
            if wanted in EVERY or wanted in (each.schema, naming.prefix(each.path))
        ]
        return {"ok": True, "examples": sorted(rows, key=lambda r: tuple(r.values()))}

    async def get_example(self, given: Arguments, _context: Context) -> Body:
        try:
            found = self.files.example(given["path"])
        except library.Unusable as error:
            return failed(("/path", str(error)))
        if found is None:
            raise ToolError(ErrorCode.NOT_FOUND, "there is no example with this path")
        example = found.parsed()
        validated = self.judge.verdict(example, found.schema)["ok"]
        return {"ok": True, "example": example, "schema": found.schema, "validated": validated}

    async def validate_asset(self, given: Arguments, _context: Context) -> Body:
        return self.judge.verdict(given["asset"], given["schema"])

    async def validate_many(self, given: Arguments, context: Context) -> Body:
        assets, schema = given["assets"], given["schema"]
        if len(assets) > self._max_batch:
            refused = {"ok": False, "reason": "unsupported", "detail": "batch_too_large"}
            return {**refused, "limit": self._max_batch}
        if (refusal := self.judge.refusal(schema)) is not None:
            return refusal
        results = []
        for number, asset in enumerate(assets):
            context.progress("validating", done=number, total=len(assets))
            results.append(self.judge.verdict(asset, schema))
        if all(result["ok"] for result in results):
            return {"ok": True, "results": results}
        return {"ok": False, "reason": "validation_failed", "results": results}

    async def diff_assets(self, given: Arguments, _context: Context) -> Body:
        return {"ok": True, "patch": diff(given["base"], given["new"])}

    async def populate_backend(self, given: Arguments, _context: Context) -> Body:
        if self.target is None:
            return {"ok": False, "reason": "unsupported", "detail": "backend disabled"}
        asset = given["asset"]
        if given["validate_first"]:
            verdict = self.judge.verdict(asset, naming.marked(asset) or naming.FALLBACK)
            if not verdict["ok"]:
                return verdict
        return await self.target.post(asset)


_NAME: Final = {"type": "string", "description": "Name of the schema, without a suffix."}
_PATH: Final = {
    "type": "string",
    "description": "As list_examples gives it, or relative to the folder of the examples.",
}
_COMPONENT: Final = {
    "type": ["string", "null"],
    "default": "all",
    "description": "Only examples of this schema, or whose file has this name; `all` for all.",
}
_VALIDATE_FIRST: Final = {
    "type": "boolean",
    "default": True,
    "description": "Send the asset only when it is valid. Leave this on.",
}


def _tool(
    run: Any,
    title: str,
    description: str,
    given: Mapping[str, Any],
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
        input=given,
        output=output,
        payload=FLAT,
        run=run,
        timeout=TIMEOUT,
        errors=errors,
        hints=hints,
        examples=({"arguments": example or {}},),
    )


def assets(settings: Settings) -> Assets:
    """Read the files, compile the schemas.

    Raises:
        SettingError: a configured folder is not there, or the backend's URL is none.
    """
    found = sources.locate(settings)
    files = library.read(found)
    judge = Judge(files.schemas, found.schemas)
    return Assets(files, judge, backend(settings), max_batch=settings.max_batch)


def toolset(settings: Settings) -> Toolset:
    """The tools, over what is configured."""
    return Toolset(
        name="assets",
        purpose="Serve schemas and examples; validate, compare and publish assets.",
        tools=assets(settings).tools(),
    )
