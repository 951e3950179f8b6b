"""What a tool is, before anything runs it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from cleats.contract.errors import KERNEL_CODES, ErrorCode, ToolError
from cleats.contract.listing import ListName
from cleats.contract.outline import enveloped, outline
from cleats.contract.payload import ENVELOPE, Payload, envelope_schema
from cleats.contract.prompts import Prompts
from cleats.contract.resources import Resources
from cleats.contract.routes import Route
from cleats.contract.skills import SkillEntries
from cleats.contract.violations import Validator

Schema: TypeAlias = Mapping[str, Any]

RESERVED = "x-reserved"
"""A property with this keyword is named for the future and refused when it is set."""


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

    @cached_property
    def _validator(self) -> Validator:
        return Validator(self.input)

    @cached_property
    def _defaults(self) -> Mapping[str, Any]:
        properties: Mapping[str, Schema] = self.input.get("properties", {})
        return {name: rule["default"] for name, rule in properties.items() if "default" in rule}

    @cached_property
    def _whole(self) -> tuple[str, ...]:
        """The arguments that are integers: JSON Schema counts 7.0 among them, Python does not."""
        properties: Mapping[str, Schema] = self.input.get("properties", {})
        kinds = {name: rule.get("type") for name, rule in properties.items()}
        return tuple(name for name, kind in kinds.items() if kind in ("integer", _OR_NULL))

    @cached_property
    def _reserved(self) -> frozenset[str]:
        properties: Mapping[str, Schema] = self.input.get("properties", {})
        return frozenset(name for name, rule in properties.items() if rule.get(RESERVED))

    def bind(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Check raw arguments and fill in the schema's defaults.

        Raises:
            ToolError: INVALID_REQUEST with every violation in `details`.
        """
        found = [violation.as_json() for violation in self._validator.violations(arguments)]
        if self._reserved:
            found += [_refusal(name) for name in sorted(self._reserved & arguments.keys())]
        if found:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"{self.name}: {_summed(found)}",
                hint=self._advice(arguments),
                details=found,
            )
        bound = {**self._defaults, **arguments} if self._defaults else arguments
        floats = [name for name in self._whole if type(bound.get(name)) is float]
        return {**bound, **{name: int(bound[name]) for name in floats}} if floats else bound

    def _advice(self, arguments: Mapping[str, Any]) -> str:
        """What to write instead of names that are not there."""
        known: Mapping[str, Schema] = self.input.get("properties", {})
        free = [name for name in known if name not in arguments]
        strange = [name for name in arguments if name not in known][:_TOLD]
        meant = [near for name in strange if (near := nearest(name, free))]
        asked = f"Did you mean {' and '.join(dict.fromkeys(meant))}? " if meant else ""
        return f"{asked}See the input schema of {self.name}."


_OR_NULL = ["integer", "null"]

_TOLD = 3
"""Violations that are put into words at once; all of them are in the details."""

_LONGEST = 100
"""Characters of a name that may be a slip; to compare longer ones takes long."""


def _summed(found: Sequence[Mapping[str, Any]]) -> str:
    told = [f"{each['instancePath'] or 'the arguments'}: {each['message']}" for each in found]
    more = f" (and {len(told) - _TOLD} more)" if len(told) > _TOLD else ""
    return "; ".join(told[:_TOLD]) + more


def nearest(name: str, known: Sequence[str]) -> str:
    """The name that one begins or that is spelled like it; empty when there is none."""
    if len(name) > _LONGEST:
        return ""
    starts = [each for each in known if name and each.lower().startswith(name.lower())]
    lowered = {each.lower(): each for each in known}
    alike = [lowered[each] for each in get_close_matches(name.lower(), lowered, n=1)]
    return next(iter([*starts[:1], *alike]), "")


def _refusal(name: str) -> dict[str, str]:
    return {
        "instancePath": f"/{name}",
        "schemaPath": f"#/properties/{name}/{RESERVED}",
        "keyword": RESERVED,
        "message": f'"{name}" is reserved for the future and must not be set',
    }


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
