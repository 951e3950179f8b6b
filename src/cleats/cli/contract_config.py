"""The file `cleats-contract.toml`: the servers that a team depends on, and how strictly they are judged."""

import os
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from cleats.cli.output import UnusableInput
from cleats.contract.compat import RULES, BumpLevel, ContractPolicy, ContractReport, RuleException

CONFIG_PATH: Final = Path("cleats-contract.toml")
DEFAULT_TIMEOUT_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractServer:
    """An MCP server other than ours."""

    command: str | None
    url: str | None
    headers: dict[str, str]
    timeout: float
    grace: float
    env: dict[str, str] = field(default_factory=dict)
    """Variables besides those of this process."""

    def take_snapshot(self) -> dict[str, Any]:
        """Read the surface of the server."""
        import anyio  # noqa: PLC0415

        from cleats.transports.mcp import client  # noqa: PLC0415 - imports the SDK

        read_surface = partial(client.read_surface, **{**asdict(self), "env": {**os.environ, **self.env}})
        try:
            return anyio.run(read_surface)
        except client.ServerFaultError as error:
            raise UnusableInput(str(error)) from None


LevelName = Literal["major", "minor", "patch", "off"]


class ServerConfig(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="kebab"):
    """A server: a command to start or an address, and its lock file."""

    lock: str
    command: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    env: dict[str, str] = {}
    timeout: float = DEFAULT_TIMEOUT_SECONDS

    def open_server(self, grace: float) -> ContractServer:
        """Return the server; `$NAME` in headers and variables stands for a variable of the environment."""
        headers, env = (
            {name: expand_variables(value) for name, value in values.items()} for values in (self.headers, self.env)
        )
        return ContractServer(
            command=self.command, url=self.url, headers=headers, env=env, timeout=self.timeout, grace=grace
        )


def expand_variables(text: str) -> str:
    """Replace `$NAME` by a variable of the environment."""
    expanded = os.path.expandvars(text)
    for match in re.finditer(r"\$(?:(\w+)|\{(\w+)\})", text):
        if (name := match[1] or match[2]) not in os.environ:
            raise UnusableInput(f"{match[0]}: the environment variable {name} is not set.")
    return expanded


class ExceptionConfig(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="kebab"):
    """A finding that the team has agreed to."""

    rule: str
    reason: str
    server: str | None = None
    tool: str | None = None
    pointer: str | None = None
    expires: date | None = None


class ContractConfig(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="kebab"):
    """The whole file."""

    rule_set: Literal["default", "strict"] = "default"
    fail_on: Literal["major", "minor", "patch"] = "patch"
    security: Literal["fail", "warn"] = "fail"
    rules: dict[str, LevelName] = {}
    exceptions: list[ExceptionConfig] = []
    own_contract: bool = False
    """Whether the contract of Cleats itself is checked too, in its repository."""
    toolsets: list[str] = []
    """The installed toolsets whose contract is in this repository."""
    servers: dict[str, ServerConfig] = {}

    @property
    def has_subjects(self) -> bool:
        return self.own_contract or bool(self.toolsets or self.servers)

    def build_policy(self, server: str | None = None) -> ContractPolicy:
        """Return the policy of the file, for one of its servers."""
        return ContractPolicy(
            strict=self.rule_set == "strict",
            levels={name: BumpLevel.NONE if level == "off" else BumpLevel(level) for name, level in self.rules.items()},
            exceptions=tuple(RuleException(**msgspec.structs.asdict(item)) for item in self.exceptions),
            server=server,
            today=datetime.now(UTC).date(),
        )


class Threshold(NamedTuple):
    """From where on a change of another server is a problem."""

    level: BumpLevel
    has_security: bool

    def count_problems(self, report: ContractReport) -> int:
        return sum(
            finding.rule.level.rank >= self.level.rank or (finding.rule.security and self.has_security)
            for finding in report.findings
        )


def load_config(path: Path | None) -> ContractConfig:
    """Load a configuration; without a path, the one in this folder if there is one.

    Raises:
        UnusableInput: The file cannot be read, or something in it is unknown.
    """
    if path is None and not CONFIG_PATH.exists():
        return ContractConfig()
    path = path or CONFIG_PATH
    try:
        config = msgspec.toml.decode(path.read_bytes(), type=ContractConfig)
    except OSError as error:
        raise UnusableInput(f"{path}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise UnusableInput(f"{path}: {error}") from None
    _check_names(path, config)
    return config


def _check_names(path: Path, config: ContractConfig) -> None:
    for name in (*config.rules, *(item.rule for item in config.exceptions)):
        if name not in RULES:
            raise UnusableInput(f"{path}: unknown rule {name!r}; list them with: cleats contract rules")
    for name, server in config.servers.items():
        if (server.command is None) is (server.url is None):
            raise UnusableInput(f"{path}: servers.{name} needs either a command or a url")
    for item in config.exceptions:
        if item.server is not None and item.server not in config.servers:
            raise UnusableInput(f"{path}: an exception names the server {item.server!r}, which is not in the file")
