"""The definition of tools and toolsets, independent of how they run."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from cleats.contract.arguments import ArgumentBinder, Schema
from cleats.contract.errors import KERNEL_CODES, ErrorCode
from cleats.contract.payload import ENVELOPE, Payload, build_envelope_schema
from cleats.contract.resources import ListName, PromptProvider, ResourceProvider, SkillProvider
from cleats.contract.routes import Route

_OUTLINE_KEYWORDS: Final = ("type", "enum", "const")


def outline_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names and types of the properties of an object schema."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    outlined = _pick_outline_keywords(schema)
    if properties:
        outlined["properties"] = {
            name: _pick_outline_keywords(property_schema) for name, property_schema in properties.items()
        }
    if "required" in schema:
        outlined["required"] = list(schema["required"])
    return outlined


def _pick_outline_keywords(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {keyword: schema[keyword] for keyword in _OUTLINE_KEYWORDS if keyword in schema}


def outline_envelope(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outline of the envelope around a result."""
    return {
        "type": "object",
        "required": ["ok", "_meta"],
        "properties": {"ok": {"type": "boolean"}, "result": result, "error": {"type": "object"}},
    }


class Context(Protocol):
    """The channel through which a running handler reports back."""

    def progress(
        self, message: str, *, phase: str = "progress", done: float | None = None, total: float | None = None
    ) -> None:
        """Report how far the work is. Cheap, never blocks, may be coalesced."""

    def warn(self, code: str, message: str, **facts: Any) -> None:
        """Add a structured warning to the answer."""

    def about(self, repo: str) -> None:
        """Set the repository that the answer is about."""

    def note(self, **facts: str) -> None:
        """Add facts to the span of the call; some payloads show them too."""

    @property
    def trace(self) -> tuple[str, str]:
        """The ids of the call's trace and span, in hexadecimal."""

    @property
    def sampled(self) -> bool:
        """True if the span of the call is recorded, so that spans below it should be too."""


Handler: TypeAlias = Callable[[Mapping[str, Any], Context], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Alias:
    """An older name of a tool that still works."""

    name: str
    deprecated: str
    """The contract version that deprecated the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """Hints on how careful a client has to be. The defaults describe a harmless tool."""

    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False

    def as_json(self) -> dict[str, bool]:
        """Return the hints as MCP tool annotations."""
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A name, two schemas and the function behind them.

    `version` is the tool's own integer; it rises when a caller could notice a change. `output`
    describes what the handler returns; the payload decides how that is wrapped. Lists of tools show
    an outline of it, or `listed_output` where an outline is not enough.
    """

    name: str
    description: str | Callable[[], str]
    input: Schema
    run: Handler
    version: int = 1
    title: str = ""
    output: Schema | None = None
    listed_output: Schema | None = None
    payload: Payload = ENVELOPE
    timeout: float | None = 120.0
    aliases: tuple[Alias, ...] = ()
    hints: Hints = Hints()
    errors: tuple[ErrorCode, ...] = ()
    examples: tuple[Mapping[str, Any], ...] = ()
    list_arguments: frozenset[str] = frozenset()
    """Text arguments that take several values with commas, or as an array."""
    search_hint: str = ""
    """Words by which a client that loads tools on demand finds this one."""
    always_load: bool = False
    """True if a client that loads tools on demand should load this one at once."""

    @property
    def current_description(self) -> str:
        """The current description; it may change while the server runs."""
        return self.description if isinstance(self.description, str) else self.description()

    @property
    def output_schema(self) -> Schema | None:
        """The schema that every answer fits, including its wrapping: the promise to callers."""
        if self.output is not None and self.payload is ENVELOPE:
            return build_envelope_schema(self.output)
        return self.output

    @property
    def listed_schema(self) -> Schema | None:
        """The output schema as lists of tools show it."""
        if self.output is not None and self.payload is ENVELOPE:
            return outline_envelope(self.listed_output or outline_schema(self.output))
        return self.listed_output or self.output

    @cached_property
    def codes(self) -> frozenset[ErrorCode]:
        """Every error code that this tool may answer with."""
        return frozenset(self.errors) | frozenset(KERNEL_CODES)

    def bind(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Check raw arguments and fill in the schema's defaults.

        Raises:
            ToolError: INVALID_REQUEST with every violation in `details`.
        """
        return self._binder.bind(arguments)

    @cached_property
    def _binder(self) -> ArgumentBinder:
        return ArgumentBinder(self.name, self.input, self.list_arguments)


class ListChangeCallback(Protocol):
    """A callback for a toolset to call, on the event loop, when one of its lists has changed."""

    def __call__(self, *lists: ListName) -> None:
        """Announce that these lists changed; without arguments, the list of tools."""


@dataclass(frozen=True, kw_only=True)
class Toolset:
    """A family of tools that share state.

    `running` is a context manager for state that lives as long as the server (a watcher, a store); it is entered when
    the server starts and exited when it stops. Offers other than tools are served by the surfaces that support them.
    """

    name: str
    purpose: str
    tools: Sequence[Tool]
    advice: str = ""
    """When an agent should use these tools, for the instructions of a server."""
    schema_version: str = ""
    """The version of the toolset's own contract (SemVer); empty for built-in toolsets, which share `SCHEMA_VERSION`."""
    package: str = ""
    """The installed package that provides the toolset, with its version; set when it is loaded."""
    running: Callable[[ListChangeCallback], AbstractAsyncContextManager[None]] | None = None
    changes: bool = False
    """True if its lists may change while it runs; clients are promised notifications."""
    resources: ResourceProvider | None = None
    prompts: PromptProvider | None = None
    skills: SkillProvider | None = None
    ready: Callable[[], Awaitable[None]] | None = None
    """Returns if the required stores can be reached, otherwise raises; called every second."""
    on_roots: Callable[[Sequence[Path]], None] | None = None
    """Called with the folders that the client works in, if the toolset has no repository of its own."""
    routes: Sequence[Route] = ()
    """HTTP routes of the toolset, served by the HTTP surface; see `contract.routes`."""


def arguments(properties: Mapping[str, Schema] | None = None, *, required: Sequence[str] = ()) -> dict[str, Any]:
    """Return the input schema of a tool: a closed object, JSON Schema draft 2020-12."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties or {})}
    if required:
        schema["required"] = list(required)
    schema["additionalProperties"] = False
    return schema
