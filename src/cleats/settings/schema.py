"""The table of settings: each with a name, a type, a default and a one-line description.

Settings of one toolset or surface are a group, such as `settings.launch.hugo`. Outside the program every setting has a
flat name, such as `launch_hugo`: in files, in the environment, in reports.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec import Struct

T = TypeVar("T")
StructT = TypeVar("StructT", bound=type[Struct])


class SettingDefinition(NamedTuple):
    """One row of the table, without its name and type."""

    default: Any
    about: str
    least: int
    env: str
    private: bool


_pending_definitions: list[SettingDefinition] = []

DEFINITIONS_BY_TABLE: dict[type[Struct], list[SettingDefinition]] = {}
"""The rows of each table, in the order of its fields."""


def _setting(default: T, about: str, *, least: int = 0, env: str = "", private: bool = False) -> T:
    """Define one row of the table, and return its default.

    `least` is the smallest number allowed. `env` names a variable that a specification or a standard dictates; all
    others are `CLEATS_<NAME>`.
    """
    _pending_definitions.append(SettingDefinition(default, about, least, env, private))
    return default


def _private(default: T, about: str, *, least: int = 0, env: str = "") -> T:
    """Define a setting that a checkout must not have: it could send data elsewhere or write outside itself."""
    return _setting(default, about, least=least, env=env, private=True)


def _define_table(struct: StructT) -> StructT:
    DEFINITIONS_BY_TABLE[struct] = _pending_definitions.copy()
    _pending_definitions.clear()
    return struct


@_define_table
class AssetSettings(Struct, frozen=True, kw_only=True):
    """The settings of the assets toolset."""

    schemas_dir: str = _private(
        "",
        "Folder of the JSON Schemas that the assets toolset serves, or a clone that holds one.",
        env="SYN_SCHEMAS_DIR",
    )
    examples_dir: str = _private(
        "", "Folder of the examples that the assets toolset serves, or a clone that holds one.", env="SYN_EXAMPLES_DIR"
    )
    backend_url: str = _private("", "Where `populate_backend` sends assets; it is off without.", env="SYN_BACKEND_URL")
    backend_assets_path: str = _private(
        "/synesthetic-assets/", "The path below `backend_url` that assets are posted to.", env="SYN_BACKEND_ASSETS_PATH"
    )
    max_batch: int = _setting(100, "Assets that one `validate_many` may bring.", least=1, env="MCP_MAX_BATCH")


@_define_table
class HttpSettings(Struct, frozen=True, kw_only=True):
    """The settings of the HTTP API; their public names begin with `http_`."""

    token: str = _private("", "What callers of the HTTP API must send.")
    tokens: str = _private(
        "",
        "File with the tokens of the HTTP API, as hashes: who may use which tools, on which repositories, how often.",
    )
    origins: tuple[str, ...] = _private((), "Origins or hosts whose pages may use the HTTP API; `*` for any.")
    hosts: tuple[str, ...] = _private((), "More names that the HTTP API goes by, as the Host header has them.")
    roots: tuple[Path, ...] = _private((), "Folders in which callers of the HTTP API may name a repository.")
    body_limit: int = _setting(1_000_000, "Bytes that the body of an HTTP request may have.", least=1)
    sessions: Literal["on", "off"] = _private(
        "on",
        "Whether MCP clients of 2025 get a session at `/mcp`; off when requests are spread over "
        "several servers, which then answer each by itself.",
    )
    probes: Literal["guarded", "open"] = _private(
        "guarded", "Whether `/health` and `/ready` want the token and a known Host like all other routes."
    )
    linger: float = _private(
        0.0,
        "Seconds that an HTTP server which is asked to stop goes on serving, while `/ready` says "
        "that it will: the time in which a load balancer notices.",
    )
    access_log: str = _private("", "Where a JSON line for every HTTP request goes: `stderr` or a file.")
    audit_log: str = _private("", "File that gets a JSON line for every tool call over HTTP: who, what, how it ended.")
    log_bytes: int = _private(
        64 << 20, "Bytes of a file of HTTP lines before the next is begun; four older ones are kept.", least=1
    )


@_define_table
class CodeSettings(Struct, frozen=True, kw_only=True):
    """The settings of the code toolset."""

    index_url: str = _private(
        "", "Where the index of this project is shared with other machines: a folder, or `s3://bucket/prefix`."
    )
    index_name: str = _private(
        "",
        "What it and the records of the project are called among machines; the name of the "
        "project's folder by default.",
    )
    index_share: Literal["read", "publish"] = _private(
        "read", "Whether this machine reads the shared index, or builds and publishes it."
    )
    index_poll: float = _setting(2.0, "Seconds between two looks for a newer shared index.")
    index_endpoint: str = _private("", "The address of an object store that is not Amazon's.")
    opensearch_url: str = _private(
        "",
        "An OpenSearch that has the index of this project, for a corpus beyond one machine: "
        "`https://host:9200`. Servers search in it; with `index_share = publish` this machine "
        "builds and publishes to it.",
    )
    opensearch_indexes: tuple[str, ...] = _private(
        (), "Indexes there that a server searches as one corpus, instead of the one of `index_name`."
    )
    opensearch_user: str = _private("", "Who this machine is to it.")
    opensearch_password: str = _private("", "What proves that.")
    opensearch_token: str = _private("", "Sent as a bearer token instead of a user and a password.")
    opensearch_ca: str = _private(
        "", "File with the certificates that its own is checked with; this machine's by default."
    )
    opensearch_shards: int = _setting(1, "Into how many parts it cuts an index; about 30 GB each.", least=1)
    opensearch_replicas: int = _setting(1, "How many copies of each part it keeps.")
    auto_index: Literal["auto", "on", "off"] = _setting(
        "auto",
        "Build a missing index in the background at the first question, and answer from the files meanwhile; "
        "`auto` is on for `cleats serve` and off elsewhere.",
    )
    index_workers: int = _setting(0, "Processes that read files while an index is built; 0 for one per core.")
    index_git: Literal["on", "off"] = _setting(
        "on", "Whether an index knows authors, dates and churn; reading a history takes time."
    )
    index_lint: Literal["on", "off", "repository"] = _private(
        "on",
        "Whether an index knows what linters find; with `repository` also those, with their "
        "plugins, that lie in a repository, which lets its code run.",
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
    download_hosts: tuple[str, ...] = _private(
        (), "Hosts to download from; any but private networks by default, `*` for all."
    )
    download_roots: tuple[Path, ...] = _private((), "Folders to take files and libraries from, besides the cache.")
    download_limit: int = _private(64 << 20, "Bytes of one download.", least=1)


@_define_table
class SkillSettings(Struct, frozen=True, kw_only=True):
    """The settings of the skills toolset; their public names begin with `skill_`."""

    dirs: tuple[Path, ...] = _private((), "More folders with skills, which come before all others.")
    plugins: Literal["on", "off"] = _setting("on", "Whether skills of Claude plugins count.")
    include: tuple[str, ...] = _setting((), "Serve only these skills: names, globs, `root:PLACE` or `plugin:NAME`.")
    exclude: tuple[str, ...] = _setting((), "Serve all skills but these.")
    refresh: float = _setting(30.0, "Seconds between two looks at the folders of skills; 0 for only one at the start.")
    watch: Literal["on", "off"] = _setting(
        "on", "Look again at once when the system reports a change in a folder of skills."
    )
    budget: int = _setting(2000, "Characters that the description of `skill` may have, with its list.", least=500)
    tools: Literal["skill", "all"] = _setting(
        "skill", "Tools to serve: only `skill`, or `all` with skill_search, skill_file and skill_diagnostics."
    )


@_define_table
class LaunchSettings(Struct, frozen=True, kw_only=True):
    """The settings of the launch toolset; their public names begin with `launch_`."""

    profile: str = _setting("aspose", "The profile of runs that name none, and of repositories that are to be guessed.")
    profiles: tuple[Path, ...] = _private((), "Folders with more profiles, which come before the built-in ones.")
    registry: tuple[Path, ...] = _private(
        (), "Files that say which repository a product has: `[[product]]` with family, platform, repo_url."
    )
    site: str = _private("", "The repository of the site, for runs that name none and profiles without one.")
    secrets: tuple[str, ...] = _private((), "Variables that a run may name as its tokens; no other is ever read.")
    runs_dir: str = _private(
        "",
        "Artifacts and checkouts of runs, which the servers and workers of a fleet share; "
        "`launch/runs` in `data_dir` by default.",
    )
    lease: float = _setting(10.0, "Seconds after which a run may be taken over whose server has died.", least=1)
    endpoints: tuple[str, ...] = _private(
        ("https://api.github.com",), "Addresses, besides this machine's own, that may be sent those tokens."
    )
    telemetry: str = _private(
        "", "Where records of runs are sent, besides being kept here; runs may name another place."
    )
    telemetry_token: str = _private("", "The variable of `launch_secrets` that holds the token for it.")
    hugo: str = _private("", "The program that builds sites; the one of `cleats[launch]` or on the path if not set.")
    offline: Literal["on", "off"] = _private(
        "off", "With `on`, runs ask nothing of the network but their repositories."
    )
    models: Literal["on", "off"] = _private(
        "off",
        "With `on`, a run may have its pages reworded by the model that it names, at an address "
        "of `launch_endpoints` or on this machine.",
    )
    link_hosts: tuple[str, ...] = _private((), "Hosts whose links are checked although they are on a private network.")


@_define_table
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
    transport: Literal["sdk", "legacy"] = _private(
        "sdk",
        "What `cleats serve` speaks without `--wire`: MCP, or the deprecated wire before it.",
        env="PAIROFCLEATS_MCP_TRANSPORT",
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
    otlp_endpoint: str = _private(
        "", "URL of an OpenTelemetry collector; needs `cleats[otlp]`.", env="OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
    )
    assets: AssetSettings = AssetSettings()
    rpc_frame_limit: int = _setting(1 << 20, "Bytes that one request may have on the rpc wire.", least=1)
    ready_file: str = _private(
        "/tmp/mcp.ready",  # noqa: S108 - the name that the spec binds; never followed as a link
        "File that says an rpc server is ready: its pid and the time; `/dev/null` for none.",
        env="MCP_READY_FILE",
    )
    http: HttpSettings = HttpSettings()
    database_url: str = _private(
        "",
        "A PostgreSQL that several machines share: their runs and jobs, the records of `triage`, "
        "and pointers to indexes; needs `cleats[fleet]`.",
    )
    cache_dir: Path = _private(Path(), "Indexes, models and downloads; the XDG cache folder by default.")
    data_dir: Path = _private(Path(), "Runs, records and spans; the XDG data folder by default.")
    home: Path = _private(Path(), "The user's folder, in which skills are looked for.", env="HOME")
    config_home: Path = _private(
        Path(),
        "The user's configuration, in which some agents keep skills; `~/.config` by default.",
        env="XDG_CONFIG_HOME",
    )
    claude_dir: Path = _private(
        Path(), "Claude's folder, with skills and plugins; `~/.claude` by default.", env="CLAUDE_CONFIG_DIR"
    )
    project_dir: Path = _private(
        Path(),
        "The project: its skills are looked for from here up to the root of its repository, "
        "which is also the one that is searched; the working folder by default.",
    )
    code: CodeSettings = CodeSettings()
    skills: SkillSettings = SkillSettings()
    launch: LaunchSettings = LaunchSettings()
