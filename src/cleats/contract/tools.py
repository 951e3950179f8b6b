"""What a tool is, before anything runs it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from cleats.contract.binding import Binding, Schema
from cleats.contract.errors import KERNEL_CODES, ErrorCode
from cleats.contract.listing import ListName
from cleats.contract.outline import enveloped, outline
from cleats.contract.payload import ENVELOPE, Payload, envelope_schema
from cleats.contract.prompts import Prompts
from cleats.contract.resources import Resources
from cleats.contract.routes import Route
from cleats.contract.skills import SkillEntries


class Context(Protocol):
    """What a handler can say while it runs."""

    def progress(
        self,
        message: str,
        *,
        phase: str = "progress",
        done: float | None = None,
        total: float | None = None,
    ) -> None:
        """Tell the caller how far the work is. Cheap, never blocks, may be coalesced."""

    def warn(self, code: str, message: str, **facts: Any) -> None:
        """Add a structured warning to the answer."""

    def about(self, repo: str) -> None:
        """Name the repository that the answer is about."""

    def note(self, **facts: str) -> None:
        """Put facts on the call's span; some payloads show them too."""

    @property
    def trace(self) -> tuple[str, str]:
        """The ids of the call's trace and span, in hexadecimal."""

    @property
    def sampled(self) -> bool:
        """Whether the call's span is kept, so that spans below it should be."""


Handler: TypeAlias = Callable[[Mapping[str, Any], Context], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Alias:
    """An older name that still works."""

    name: str
    deprecated: str
    """The contract version that deprecated it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """How careful a client has to be. The defaults are the harmless ones."""

    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False

    def as_json(self) -> dict[str, bool]:
        """MCP's tool annotations."""
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
    describes what the handler returns; how that is wrapped is the payload's business. Lists of
    tools show an outline of it, or `listed_output` where an outline says too little.
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

    @property
    def text(self) -> str:
        """The description as it is now."""
        return self.description if isinstance(self.description, str) else self.description()

    @property
    def output_schema(self) -> Schema | None:
        """What every answer fits, wrapping included: the promise."""
        if self.output is not None and self.payload is ENVELOPE:
            return envelope_schema(self.output)
        return self.output

    @property
    def listed_schema(self) -> Schema | None:
        """What a list of tools shows of it."""
        if self.output is not None and self.payload is ENVELOPE:
            return enveloped(self.listed_output or outline(self.output))
        return self.listed_output or self.output

    @cached_property
    def codes(self) -> frozenset[ErrorCode]:
        """Every error this tool may answer with."""
        return frozenset(self.errors) | frozenset(KERNEL_CODES)

    def bind(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Check raw arguments and fill in the schema's defaults.

        Raises:
            ToolError: INVALID_REQUEST with every violation in `details`.
        """
        return self._binding.bind(arguments)

    @cached_property
    def _binding(self) -> Binding:
        return Binding(self.name, self.input)


class Changed(Protocol):
    """Called by a toolset, on the event loop, when a list of it reads differently."""

    def __call__(self, *lists: ListName) -> None:
        """Say which lists; that of the tools when none is named."""


@dataclass(frozen=True, kw_only=True)
class Toolset:
    """A family of tools that share state.

    `running` holds what lives as long as the server does (a watcher, a store); it is entered when
    the server starts and left when it stops. What a toolset offers besides tools is served by the
    surfaces that have a place for it.
    """

    name: str
    purpose: str
    tools: Sequence[Tool]
    schema_version: str = ""
    """The version of its own contract (SemVer); empty for ours, which share `SCHEMA_VERSION`."""
    package: str = ""
    """The installed package that brings it, with its version; filled in where it is found."""
    running: Callable[[Changed], AbstractAsyncContextManager[None]] | None = None
    changes: bool = False
    """Whether its lists may read differently while it runs; clients are promised to hear of it."""
    resources: Resources | None = None
    prompts: Prompts | None = None
    skills: SkillEntries | None = None
    ready: Callable[[], Awaitable[None]] | None = None
    """Returns while the stores that it needs can be reached, else raises; asked every second."""
    routes: Sequence[Route] = ()
    """Routes of its own that the HTTP surface serves; `contract.routes` says how."""


def arguments(
    properties: Mapping[str, Schema] | None = None, *, required: Sequence[str] = ()
) -> dict[str, Any]:
    """The input schema of a tool: an object, closed, draft 2020-12."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties or {})}
    if required:
        schema["required"] = list(required)
    schema["additionalProperties"] = False
    return schema
