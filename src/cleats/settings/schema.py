"""The table of settings: each with a name, a type, a default and a one-line description."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct

T = TypeVar("T")


class _SettingDefinition(Struct, frozen=True):
    default: Any
    about: str
    least: int
    env: str
    private: bool


_definitions: list[_SettingDefinition] = []


def _setting(default: T, about: str, *, least: int = 0, env: str = "", private: bool = False) -> T:
    """Define one row of the table, and return its default.

    `least` is the smallest number allowed. `env` names a variable that a specification or a
    standard dictates; all others are `CLEATS_<NAME>`.
    A `private` setting cannot come from a repository's file: a checkout must not be able to send
    data elsewhere or write outside itself.
    """
    _definitions.append(_SettingDefinition(default, about, least, env, private))
    return default


class Settings(Struct, frozen=True, kw_only=True):
    """The values a server runs with, in seconds and bytes."""

    concurrency: int = _setting(8, "Calls that run at the same time.", least=1)
    queue: int = _setting(64, "Calls that may wait; one more is refused with QUEUE_OVERLOADED.")
    timeouts: Mapping[str, float] = _setting(
        {}, "Seconds a tool may take, by its name, 0 for any: `search=30,build_index=1200`."
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
    max_batch: int = _setting(100, "Assets that one `validate_many` may bring.", least=1, env="MCP_MAX_BATCH")
    rpc_frame_limit: int = _setting(1 << 20, "Bytes that one request may have on the rpc wire.", least=1)
    ready_file: str = _setting(
        "/tmp/mcp.ready",  # noqa: S108 - the name that the spec binds; never followed as a link
        "File that says an rpc server is ready: its pid and the time; `/dev/null` for none.",
        env="MCP_READY_FILE",
        private=True,
    )
    http_token: str = _setting("", "What callers of the HTTP API must send.", private=True)
    http_tokens: str = _setting(
        "",
        "File with the tokens of the HTTP API, as hashes: who may use which tools, on which repositories, how often.",
        private=True,
    )
    http_origins: tuple[str, ...] = _setting(
        (), "Origins or hosts whose pages may use the HTTP API; `*` for any.", private=True
    )
    http_hosts: tuple[str, ...] = _setting(
        (), "More names that the HTTP API goes by, as the Host header has them.", private=True
    )
    http_roots: tuple[Path, ...] = _setting(
        (), "Folders in which callers of the HTTP API may name a repository.", private=True
    )
    http_body_limit: int = _setting(1_000_000, "Bytes that the body of an HTTP request may have.", least=1)
    http_sessions: Literal["on", "off"] = _setting(
        "on",
        "Whether MCP clients of 2025 get a session at `/mcp`; off when requests are spread over "
        "several servers, which then answer each by itself.",
        private=True,
    )
    http_probes: Literal["guarded", "open"] = _setting(
        "guarded",
        "Whether `/health` and `/ready` want the token and a known Host like all other routes.",
        private=True,
    )
    http_linger: float = _setting(
        0.0,
        "Seconds that an HTTP server which is asked to stop goes on serving, while `/ready` says "
        "that it will: the time in which a load balancer notices.",
        private=True,
    )
    http_access_log: str = _setting(
        "", "Where a JSON line for every HTTP request goes: `stderr` or a file.", private=True
    )
    http_audit_log: str = _setting(
        "",
        "File that gets a JSON line for every tool call over HTTP: who, what, how it ended.",
        private=True,
    )
    http_log_bytes: int = _setting(
        64 << 20,
        "Bytes of a file of HTTP lines before the next is begun; four older ones are kept.",
        least=1,
        private=True,
    )
    database_url: str = _setting(
        "",
        "A PostgreSQL that several machines share: their runs and jobs, the records of `triage`, "
        "and pointers to indexes; needs `cleats[fleet]`.",
        private=True,
    )
    cache_dir: Path = _setting(Path(), "Indexes, models and downloads; the XDG cache folder by default.", private=True)
    data_dir: Path = _setting(Path(), "Runs, records and spans; the XDG data folder by default.", private=True)
    home: Path = _setting(Path(), "The user's folder, in which skills are looked for.", env="HOME", private=True)
    config_home: Path = _setting(
        Path(),
        "The user's configuration, in which some agents keep skills; `~/.config` by default.",
        env="XDG_CONFIG_HOME",
        private=True,
    )
    claude_dir: Path = _setting(
        Path(),
        "Claude's folder, with skills and plugins; `~/.claude` by default.",
        env="CLAUDE_CONFIG_DIR",
        private=True,
    )
    project_dir: Path = _setting(
        Path(),
        "The project: its skills are looked for from here up to the root of its repository, "
        "which is also the one that is searched; the working folder by default.",
        private=True,
    )
    index_url: str = _setting(
        "",
        "Where the index of this project is shared with other machines: a folder, or `s3://bucket/prefix`.",
        private=True,
    )
    index_name: str = _setting(
        "",
        "What it and the records of the project are called among machines; the name of the "
        "project's folder by default.",
        private=True,
    )
    index_share: Literal["read", "publish"] = _setting(
        "read",
        "Whether this machine reads the shared index, or builds and publishes it.",
        private=True,
    )
    index_poll: float = _setting(2.0, "Seconds between two looks for a newer shared index.")
    index_endpoint: str = _setting("", "The address of an object store that is not Amazon's.", private=True)
    opensearch_url: str = _setting(
        "",
        "An OpenSearch that has the index of this project, for a corpus beyond one machine: "
        "`https://host:9200`. Servers search in it; with `index_share = publish` this machine "
        "builds and publishes to it.",
        private=True,
    )
    opensearch_indexes: tuple[str, ...] = _setting(
        (),
        "Indexes there that a server searches as one corpus, instead of the one of `index_name`.",
        private=True,
    )
    opensearch_user: str = _setting("", "Who this machine is to it.", private=True)
    opensearch_password: str = _setting("", "What proves that.", private=True)
    opensearch_token: str = _setting("", "Sent as a bearer token instead of a user and a password.", private=True)
    opensearch_ca: str = _setting(
        "",
        "File with the certificates that its own is checked with; this machine's by default.",
        private=True,
    )
    opensearch_shards: int = _setting(1, "Into how many parts it cuts an index; about 30 GB each.", least=1)
    opensearch_replicas: int = _setting(1, "How many copies of each part it keeps.")
    index_workers: int = _setting(0, "Processes that read files while an index is built; 0 for one per core.")
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
    index_max_lines: int = _setting(200_000, "Lines of a file that is indexed; longer ones are reported. 0 for any.")
    index_max_line_bytes: int = _setting(512 << 10, "Bytes of one line in a file that is indexed. 0 for any.")
    index_max_files: int = _setting(0, "Files of one repository that are indexed; the rest is reported. 0 for all.")
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
    skill_dirs: tuple[Path, ...] = _setting((), "More folders with skills, which come before all others.", private=True)
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
    skill_budget: int = _setting(8000, "Characters that the description of `skill` may have, with its list.", least=500)
    launch_profile: str = _setting(
        "aspose", "The profile of runs that name none, and of repositories that are to be guessed."
    )
    launch_profiles: tuple[Path, ...] = _setting(
        (), "Folders with more profiles, which come before the built-in ones.", private=True
    )
    launch_registry: tuple[Path, ...] = _setting(
        (),
        "Files that say which repository a product has: `[[product]]` with family, platform, repo_url.",
        private=True,
    )
    launch_site: str = _setting(
        "",
        "The repository of the site, for runs that name none and profiles without one.",
        private=True,
    )
    launch_secrets: tuple[str, ...] = _setting(
        (), "Variables that a run may name as its tokens; no other is ever read.", private=True
    )
    launch_runs_dir: str = _setting(
        "",
        "Artifacts and checkouts of runs, which the servers and workers of a fleet share; "
        "`launch/runs` in `data_dir` by default.",
        private=True,
    )
    launch_lease: float = _setting(
        10.0,
        "Seconds after which a run may be taken over whose server has died.",
        least=1,
    )
    launch_endpoints: tuple[str, ...] = _setting(
        ("https://api.github.com",),
        "Addresses, besides this machine's own, that may be sent those tokens.",
        private=True,
    )
    launch_telemetry: str = _setting(
        "",
        "Where records of runs are sent, besides being kept here; runs may name another place.",
        private=True,
    )
    launch_telemetry_token: str = _setting(
        "", "The variable of `launch_secrets` that holds the token for it.", private=True
    )
    launch_hugo: str = _setting(
        "",
        "The program that builds sites; the one of `cleats[launch]` or on the path if not set.",
        private=True,
    )
    launch_offline: Literal["on", "off"] = _setting(
        "off", "With `on`, runs ask nothing of the network but their repositories.", private=True
    )
    launch_models: Literal["on", "off"] = _setting(
        "off",
        "With `on`, a run may have its pages reworded by the model that it names, at an address "
        "of `launch_endpoints` or on this machine.",
        private=True,
    )
    launch_link_hosts: tuple[str, ...] = _setting(
        (), "Hosts whose links are checked although they are on a private network.", private=True
    )


class Setting(Struct, frozen=True):
    """The definition of a setting, without its value."""

    name: str
    kind: Any
    """The type of its value."""
    default: Any
    about: str
    least: int
    variable: str
    """The name of its environment variable."""
    private: bool


def _build_setting(name: str, definition: _SettingDefinition) -> Setting:
    kind, variable = Settings.__annotations__[name], definition.env or f"CLEATS_{name.upper()}"
    return Setting(name, kind, definition.default, definition.about, definition.least, variable, definition.private)


SETTINGS_BY_NAME: Final[Mapping[str, Setting]] = {
    name: _build_setting(name, row) for name, row in zip(Settings.__struct_fields__, _definitions, strict=True)
}
"""All settings, in the order above."""


class SettingsWithEnvironment(Settings, frozen=True, kw_only=True):
    """Settings with the environment they came from, for programs that have to run in it.

    The environment is not a setting: only the command line sets it. Users take the variables they
    need.
    """

    environ: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"Surrounded(environ of {len(self.environ)})"  # some of it is secret


def get_environment(settings: Settings) -> Mapping[str, str]:
    """Return the environment of the settings; empty if they were created without one."""
    return settings.environ if isinstance(settings, SettingsWithEnvironment) else {}
