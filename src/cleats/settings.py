"""What the operator decides: one table of settings, each with a name, a type and a default.

The order is command line, environment, `.cleats.toml` in the repository, the user's file. Reading
them is the command line's job; here they are only checked and put together.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
N = TypeVar("N", int, float)


class SettingError(ValueError):
    """A setting has a value that it cannot have; the message says where it came from."""


def _setting(default: T, about: str, *, least: int = 0, env: str = "", private: bool = False) -> T:
    """One row of the table.

    `least` is the smallest number allowed. `env` names a variable that a spec or a standard
    binds; all others are `CLEATS_<NAME>`.
    `private` ones cannot come from a repository's file: a checkout must not be able to send data
    elsewhere or write outside itself.
    """
    metadata = {"about": about, "least": least, "env": env, "private": private}
    made: Any = (
        field(default_factory=lambda: default, metadata=metadata)
        if isinstance(default, dict)
        else field(default=default, metadata=metadata)
    )
    result: T = made
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The values a server runs with. Seconds and bytes."""

    concurrency: int = _setting(8, "Calls that run at the same time.", least=1)
    queue: int = _setting(64, "Calls that may wait; one more is refused with QUEUE_OVERLOADED.")
    timeouts: Mapping[str, float] = _setting(
        {}, "Seconds a tool may take, by its name: `search=30,build_index=1200`."
    )
    drain: float = _setting(2.0, "Seconds that running calls get when the server is asked to stop.")
    grace: float = _setting(2.0, "Seconds between asking a child process to stop and killing it.")
    frame_limit: int = _setting(8 << 20, "Bytes that one incoming message may have.", least=1)
    protocol: Literal["pin", "negotiate"] = _setting(
        "pin", "Answer every MCP handshake with 2025-11-25, or with the client's own version."
    )
    transport: Literal["sdk", "legacy"] = _setting(
        "sdk",
        "What `cleats serve` speaks without `--wire`: MCP, or the deprecated wire before it.",
        env="PAIROFCLEATS_MCP_TRANSPORT",
        private=True,
    )
    validation_errors: Literal["protocol", "tool"] = _setting(
        "protocol", "Answer bad arguments with a JSON-RPC error, or with a tool result."
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting(
        "info", "What is written to stderr; `info` has one line for every call."
    )
    telemetry: Literal["local", "off"] = _setting(
        "local", "Where spans go when no collector is configured: a file in `data_dir`, or nowhere."
    )
    otlp_endpoint: str = _setting(
        "",
        "URL of an OpenTelemetry collector; needs `cleats[otlp]`.",
        env="OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        private=True,
    )
    schemas_dir: str = _setting(
        "",
        "Folder of the JSON Schemas that the assets toolset serves, or a clone that holds one.",
        env="SYN_SCHEMAS_DIR",
        private=True,
    )
    examples_dir: str = _setting(
        "",
        "Folder of the examples that the assets toolset serves, or a clone that holds one.",
        env="SYN_EXAMPLES_DIR",
        private=True,
    )
    backend_url: str = _setting(
        "",
        "Where `populate_backend` sends assets; it is off without.",
        env="SYN_BACKEND_URL",
        private=True,
    )
    backend_assets_path: str = _setting(
        "/synesthetic-assets/",
        "The path below `backend_url` that assets are posted to.",
        env="SYN_BACKEND_ASSETS_PATH",
        private=True,
    )
    max_batch: int = _setting(
        100, "Assets that one `validate_many` may bring.", least=1, env="MCP_MAX_BATCH"
    )
    rpc_frame_limit: int = _setting(
        1 << 20, "Bytes that one request may have on the rpc wire.", least=1
    )
    ready_file: str = _setting(
        "/tmp/mcp.ready",  # noqa: S108 - the name that the spec binds; never followed as a link
        "File that says an rpc server is ready: its pid and the time; `/dev/null` for none.",
        env="MCP_READY_FILE",
        private=True,
    )
    http_token: str = _setting("", "What callers of the HTTP API must send.", private=True)
    http_origins: tuple[str, ...] = _setting(
        (), "Origins or hosts whose pages may use the HTTP API; `*` for any.", private=True
    )
    http_hosts: tuple[str, ...] = _setting(
        (), "More names that the HTTP API goes by, as the Host header has them.", private=True
    )
    http_roots: tuple[Path, ...] = _setting(
        (), "Folders in which callers of the HTTP API may name a repository.", private=True
    )
    http_body_limit: int = _setting(
        1_000_000, "Bytes that the body of an HTTP request may have.", least=1
    )
    cache_dir: Path = _setting(  # noqa: RUF009 - a row of the table
        Path(), "Indexes, models and downloads; the XDG cache folder by default.", private=True
    )
    data_dir: Path = _setting(  # noqa: RUF009 - a row of the table
        Path(), "Runs, records and spans; the XDG data folder by default.", private=True
    )
    home: Path = _setting(  # noqa: RUF009 - a row of the table
        Path(), "The user's folder, in which skills are looked for.", env="HOME", private=True
    )
    config_home: Path = _setting(  # noqa: RUF009 - a row of the table
        Path(),
        "The user's configuration, in which some agents keep skills; `~/.config` by default.",
        env="XDG_CONFIG_HOME",
        private=True,
    )
    claude_dir: Path = _setting(  # noqa: RUF009 - a row of the table
        Path(),
        "Claude's folder, with skills and plugins; `~/.claude` by default.",
        env="CLAUDE_CONFIG_DIR",
        private=True,
    )
    project_dir: Path = _setting(  # noqa: RUF009 - a row of the table
        Path(),
        "The project: its skills are looked for from here up to the root of its repository, "
        "which is also the one that is searched; the working folder by default.",
        private=True,
    )
    index_workers: int = _setting(
        0, "Processes that read files while an index is built; 0 for one per core."
    )
    index_git: Literal["on", "off"] = _setting(
        "on", "Whether an index knows authors, dates and churn; reading a history takes time."
    )
    index_lint: Literal["on", "off", "repository"] = _setting(
        "on",
        "Whether an index knows what linters find; with `repository` also those, with their "
        "plugins, that lie in a repository, which lets its code run.",
        private=True,
    )
    index_max_file_bytes: int = _setting(
        5 << 20, "Bytes of a file that is indexed; larger ones are reported. 0 for any."
    )
    index_max_lines: int = _setting(
        200_000, "Lines of a file that is indexed; longer ones are reported. 0 for any."
    )
    index_max_line_bytes: int = _setting(
        512 << 10, "Bytes of one line in a file that is indexed. 0 for any."
    )
    index_max_files: int = _setting(
        0, "Files of one repository that are indexed; the rest is reported. 0 for all."
    )
    risk_rules: tuple[Path, ...] = _setting(
        (), "Files with more rules of risk, which come after those of this program."
    )
    search_tests: Literal["same", "lower"] = _setting(
        "lower", "How code of tests ranks when a question is not about tests."
    )
    download_hosts: tuple[str, ...] = _setting(
        (),
        "Hosts to download from; any but private networks by default, `*` for all.",
        private=True,
    )
    download_roots: tuple[Path, ...] = _setting(
        (), "Folders to take files and libraries from, besides the cache.", private=True
    )
    download_limit: int = _setting(64 << 20, "Bytes of one download.", least=1, private=True)
    skill_dirs: tuple[Path, ...] = _setting(
        (), "More folders with skills, which come before all others.", private=True
    )
    skill_plugins: Literal["on", "off"] = _setting("on", "Whether skills of Claude plugins count.")
    skill_include: tuple[str, ...] = _setting(
        (), "Serve only these skills: names, globs, `root:PLACE` or `plugin:NAME`."
    )
    skill_exclude: tuple[str, ...] = _setting((), "Serve all skills but these.")
    skill_refresh: float = _setting(
        30.0, "Seconds between two looks at the folders of skills; 0 for only one at the start."
    )
    skill_watch: Literal["on", "off"] = _setting(
        "on", "Look again at once when the system reports a change in a folder of skills."
    )
    skill_budget: int = _setting(
        8000, "Characters that the description of `skill` may have, with its list.", least=500
    )


class Row(NamedTuple):
    """A setting as the documentation shows it."""

    name: str
    env: str
    kind: str
    default: str
    about: str
    private: bool


def rows() -> list[Row]:
    """The table of settings."""
    hints = get_type_hints(Settings)
    return [
        Row(
            item.name,
            variable(item),
            _kind(hints[item.name]),
            _shown(item),
            item.metadata["about"],
            item.metadata["private"],
        )
        for item in fields(Settings)
    ]


def variable(item: "Field[Any]") -> str:
    """The environment variable of a setting."""
    return item.metadata["env"] or f"CLEATS_{item.name.upper()}"


ENVIRONMENT = "environment"
"""The name of the source whose settings are variables."""


class Source(NamedTuple):
    """Where settings were read from, the strongest first in a list of them."""

    name: str
    values: Mapping[str, object]
    trusted: bool = True


def resolve(sources: Iterable[Source]) -> Settings:
    """Check every source and put the strongest value of each setting together.

    Raises:
        SettingError: an unknown name, a bad value, or a private setting in a repository's file.
    """
    hints = get_type_hints(Settings)
    table = {item.name: item for item in fields(Settings)}
    chosen: dict[str, Any] = {}
    for source in sources:
        for name, raw in source.values.items():
            if name not in table:
                raise SettingError(_unknown(name, source.name, table))
            if table[name].metadata["private"] and not source.trusted:
                raise SettingError(
                    f"{source.name}: {name} cannot be set by a repository; "
                    f"use {variable(table[name])} or your own configuration file"
                )
            try:
                value = _parse(raw, hints[name])
                _check_least(value, table[name].metadata["least"])
            except ValueError as error:
                raise SettingError(f"{_where(source, table[name])}: {error}") from None
            chosen.setdefault(name, value)
    return Settings(**chosen)


def _where(source: Source, item: "Field[Any]") -> str:
    return variable(item) if source.name == ENVIRONMENT else f"{source.name}: {item.name}"


def _unknown(name: str, source: str, table: Iterable[str]) -> str:
    near = get_close_matches(name, list(table), n=1)
    return f"{source}: there is no setting {name!r}" + (
        f"; did you mean {near[0]!r}?" if near else ""
    )


def _parse(raw: object, hint: Any) -> Any:
    if get_origin(hint) is Literal:
        return _one_of(raw, get_args(hint))
    return _KINDS[_of(hint)].parse(raw)


def _of(hint: Any) -> Any:
    """The row of a type; those of `tuple` differ in what is in it."""
    return hint if hint in _KINDS else get_origin(hint)


def _one_of(raw: object, options: tuple[str, ...]) -> str:
    if raw not in options:
        raise ValueError(f"expected one of {', '.join(options)}, not {raw!r}")
    return str(raw)


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise ValueError(f"expected text, not {raw!r}")  # noqa: TRY004 - the user's error
    return raw


def _folder(raw: object) -> Path:
    try:
        # Absolute now: a server's working folder is whatever its client made it.
        return Path(_text(raw)).expanduser().absolute()
    except RuntimeError:
        raise ValueError(f"nobody here has the home folder of {raw!r}") from None


def _integer(raw: object) -> int:
    number = _number(raw, int)
    if number != _number(raw, float):
        raise ValueError(f"expected a whole number, not {raw!r}")
    return number


def _seconds(raw: object) -> float:
    return _number(raw, float)


def _number(raw: object, kind: Callable[[Any], N]) -> N:
    try:
        value = kind(raw)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected a number, not {raw!r}") from None
    if isinstance(raw, bool) or not 0 <= value < float("inf"):
        raise ValueError(f"expected a number that is zero or more, not {raw!r}")
    return value


def _by_name(raw: object) -> dict[str, float]:
    if isinstance(raw, str):
        pairs = [pair.partition("=") for pair in raw.split(",") if pair.strip()]
        if not all(name.strip() and equals for name, equals, _ in pairs):
            raise ValueError(f"expected name=seconds,…, not {raw!r}")
        raw = {name.strip(): value.strip() for name, _, value in pairs}
    if not isinstance(raw, Mapping):
        raise ValueError(f"expected name=seconds,…, not {raw!r}")  # noqa: TRY004 - the user's error
    return {str(name): _seconds(value) for name, value in raw.items()}


def _words(raw: object) -> tuple[str, ...]:
    parts = raw.split(",") if isinstance(raw, str) else raw
    if not isinstance(parts, list | tuple):
        raise ValueError(f"expected a list, not {raw!r}")  # noqa: TRY004 - the user's error
    return tuple(word for part in parts if (word := _text(part).strip()))


def _folders(raw: object) -> tuple[Path, ...]:
    return tuple(map(_folder, _words(raw)))


class _Kind(NamedTuple):
    word: str
    parse: Callable[[object], Any]


_KINDS: Mapping[Any, _Kind] = {
    int: _Kind("integer", _integer),
    float: _Kind("seconds", _seconds),
    str: _Kind("text", _text),
    Path: _Kind("folder", _folder),
    Mapping: _Kind("name=seconds", _by_name),
    tuple[str, ...]: _Kind("list, with commas", _words),
    tuple[Path, ...]: _Kind("folders, with commas", _folders),
}
"""What a setting can be, other than one of a few words."""


def _check_least(value: object, least: int) -> None:
    if isinstance(value, int | float) and value < least:
        raise ValueError(f"expected at least {least}, not {value!r}")


def _kind(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(f"`{option}`" for option in get_args(hint))
    return _KINDS[_of(hint)].word


def _shown(item: "Field[Any]") -> str:
    default = item.default if item.default is not MISSING else ""
    return "" if default in ("", (), Path()) else str(default)
