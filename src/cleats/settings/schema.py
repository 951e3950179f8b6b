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
        "",
        "Folder of the examples that the assets toolset serves, or a clone that contains one.",
        env="SYN_EXAMPLES_DIR",
    )
    backend_url: str = _private(
        "", "URL of the backend for `populate_backend`; empty disables the tool.", env="SYN_BACKEND_URL"
    )
    backend_assets_path: str = _private(
        "/synesthetic-assets/", "Path below `backend_url` for new assets.", env="SYN_BACKEND_ASSETS_PATH"
    )
    max_batch: int = _setting(
        100, "Maximum number of assets in one `validate_many` call.", least=1, env="MCP_MAX_BATCH"
    )


@_define_table
class HttpSettings(Struct, frozen=True, kw_only=True):
    """The settings of the HTTP API; their public names begin with `http_`."""

    token: str = _private("", "Token that every HTTP caller must send.")
    tokens: str = _private(
        "",
        "File with hashed HTTP tokens, each with its tools, repositories and rate limit (`cleats token new` adds one).",
    )
    origins: tuple[str, ...] = _private((), "Origins or hosts whose web pages may use the HTTP API; `*` allows any.")
    hosts: tuple[str, ...] = _private((), "Additional names that the HTTP API accepts in the Host header.")
    roots: tuple[Path, ...] = _private((), "Folders whose repositories HTTP callers may use.")
    body_limit: int = _setting(1_000_000, "Maximum size of an HTTP request body, in bytes.", least=1)
    sessions: Literal["on", "off"] = _private(
        "on",
        "Sessions for MCP clients of the 2025 protocol at `/mcp`; use `off` behind a load balancer.",
    )
    probes: Literal["guarded", "open"] = _private(
        "guarded", "Access to `/health` and `/ready`: `guarded` requires the token and a known Host, `open` does not."
    )
    linger: float = _private(
        0.0,
        "Seconds that a stopping HTTP server keeps serving while `/ready` reports 503, so that a load balancer "
        "notices.",
    )
    access_log: str = _private("", "Destination of the access log (one JSON line per request): `stderr` or a file.")
    audit_log: str = _private(
        "", "File for the audit log: one JSON line per tool call over HTTP, with caller and outcome."
    )
    log_bytes: int = _private(
        64 << 20, "Maximum size of an HTTP log file, in bytes; four older files are kept.", least=1
    )


@_define_table
class CodeSettings(Struct, frozen=True, kw_only=True):
    """The settings of the code toolset."""

    index_url: str = _private("", "Location of the shared index: a folder or `s3://bucket/prefix`.")
    index_name: str = _private(
        "",
        "Name of the project in shared indexes and records [default: the name of its folder].",
    )
    index_share: Literal["read", "publish"] = _private(
        "read", "`read` uses the shared index; `publish` builds and publishes it."
    )
    index_poll: float = _setting(2.0, "Seconds between checks for a newer shared index.")
    index_endpoint: str = _private("", "URL of an S3-compatible object store other than Amazon's.")
    opensearch_url: str = _private(
        "",
        "URL of an OpenSearch cluster, such as `https://host:9200`. Servers search in it; with `index_share = "
        "publish` this machine builds the index and publishes it there.",
    )
    opensearch_indexes: tuple[str, ...] = _private(
        (), "OpenSearch indexes to search as one corpus, instead of the one named by `index_name`."
    )
    opensearch_user: str = _private("", "OpenSearch user name.")
    opensearch_password: str = _private("", "OpenSearch password.")
    opensearch_token: str = _private("", "OpenSearch bearer token, instead of user name and password.")
    opensearch_ca: str = _private("", "File with the CA certificates for OpenSearch [default: those of the system].")
    opensearch_shards: int = _setting(1, "Number of shards of an OpenSearch index; about 30 GB each.", least=1)
    opensearch_replicas: int = _setting(1, "Number of replicas of each OpenSearch shard.")
    auto_index: Literal["auto", "on", "off"] = _setting(
        "auto",
        "Build a missing index in the background at the first question and answer from the files until it is ready; "
        "`auto` is on for `cleats serve` and off elsewhere.",
    )
    index_workers: int = _setting(0, "Number of processes that parse files during a build; 0 means one per core.")
    index_git: Literal["on", "off"] = _setting("on", "Index authors, dates and churn from the git history.")
    index_lint: Literal["on", "off", "repository"] = _private(
        "on",
        "Index linter findings; `repository` also runs linters and plugins installed in the repository, which "
        "executes its code.",
    )
    index_max_file_bytes: int = _setting(
        5 << 20, "Maximum size of an indexed file, in bytes; larger files are listed as skipped. 0 means no limit."
    )
    index_max_lines: int = _setting(
        200_000, "Maximum number of lines of an indexed file; longer files are listed as skipped. 0 means no limit."
    )
    index_max_line_bytes: int = _setting(
        512 << 10, "Maximum length of a line in an indexed file, in bytes. 0 means no limit."
    )
    index_max_files: int = _setting(
        0, "Maximum number of indexed files in a repository; the others are listed as skipped. 0 means no limit."
    )
    risk_rules: tuple[Path, ...] = _setting((), "Files with additional risk rules, applied after the built-in ones.")
    search_tests: Literal["same", "lower"] = _setting(
        "lower", "Rank of test code for queries that are not about tests: `lower` or `same` as other code."
    )
    download_hosts: tuple[str, ...] = _private(
        (), "Hosts that downloads may use; `*` allows all [default: any host outside private networks]."
    )
    download_roots: tuple[Path, ...] = _private(
        (), "Folders, besides the cache, that files and libraries may be taken from."
    )
    download_limit: int = _private(64 << 20, "Maximum size of a download, in bytes.", least=1)


@_define_table
class SkillSettings(Struct, frozen=True, kw_only=True):
    """The settings of the skills toolset; their public names begin with `skill_`."""

    dirs: tuple[Path, ...] = _private((), "Additional skill folders, which take precedence over all others.")
    plugins: Literal["on", "off"] = _setting("on", "Serve the skills of Claude plugins.")
    include: tuple[str, ...] = _setting((), "Serve only these skills: names, globs, `root:PLACE` or `plugin:NAME`.")
    exclude: tuple[str, ...] = _setting((), "Do not serve these skills: names, globs, `root:PLACE` or `plugin:NAME`.")
    refresh: float = _setting(30.0, "Seconds between scans of the skill folders; 0 scans only at start-up.")
    watch: Literal["on", "off"] = _setting(
        "on", "Scan again at once when the system reports a change in a skill folder."
    )
    budget: int = _setting(
        2000, "Maximum length of the description of `skill`, including the list of skills, in characters.", least=500
    )
    tools: Literal["skill", "all"] = _setting(
        "skill", "Tools to serve: only `skill`, or `all` to add skill_search, skill_file and skill_diagnostics."
    )


@_define_table
class LaunchSettings(Struct, frozen=True, kw_only=True):
    """The settings of the launch toolset; their public names begin with `launch_`."""

    profile: str = _setting("plain", "Default profile; a quickstart uses the profile that recognises its URL, if any.")
    profiles: tuple[Path, ...] = _private(
        (), "Folders with additional profiles, which take precedence over the built-in ones."
    )
    registry: tuple[Path, ...] = _private(
        (), "Files that map products to repositories: `[[product]]` with family, platform and repo_url."
    )
    site: str = _private("", "Site repository for runs and profiles that do not name one.")
    secrets: tuple[str, ...] = _private(
        (), "Environment variables that a run may use as tokens; Cleats reads no others."
    )
    runs_dir: str = _private(
        "",
        "Folder for the artifacts and checkouts of runs; the machines of a fleet share it [default: `launch/runs` in "
        "`data_dir`].",
    )
    lease: float = _setting(10.0, "Seconds after which another server may take over the run of a dead one.", least=1)
    endpoints: tuple[str, ...] = _private(
        ("https://api.github.com",), "URLs, besides this machine's, that may receive the tokens of a run."
    )
    telemetry: str = _private(
        "", "URL that receives the records of runs in addition to the local store; a run may name another one."
    )
    telemetry_token: str = _private("", "Variable of `launch_secrets` with the token for `launch_telemetry`.")
    hugo: str = _private("", "Path of Hugo [default: the one of `cleats[launch]`, then the one on PATH].")
    offline: Literal["on", "off"] = _private(
        "off", "With `on`, runs use the network only to read and write their repositories."
    )
    models: Literal["on", "off"] = _private(
        "off",
        "With `on`, a run may use the language model it names, on this machine or at a URL of `launch_endpoints`, to "
        "reword its pages.",
    )
    run_snippets: Literal["on", "off"] = _private(
        "off",
        "With `on`, runs build and install the package and run its example programs, behind a fence without network "
        "(Linux only). This runs the code and the build backend of the repository.",
    )
    link_hosts: tuple[str, ...] = _private((), "Hosts on private networks whose links are checked too.")


@_define_table
class Settings(Struct, frozen=True, kw_only=True):
    """The values a server runs with, in seconds and bytes."""

    concurrency: int = _setting(8, "Maximum number of calls that run at the same time.", least=1)
    queue: int = _setting(64, "Maximum number of waiting calls; further calls fail with QUEUE_OVERLOADED.")
    timeouts: Mapping[str, float] = _setting(
        {}, "Timeout per tool in seconds, 0 for none: `search=30,build_index=1200`."
    )
    drain: float = _setting(2.0, "Seconds that running calls get to finish when the server stops.")
    grace: float = _setting(2.0, "Seconds between asking a child process to stop and killing it.")
    frame_limit: int = _setting(8 << 20, "Maximum size of an incoming message, in bytes.", least=1)
    protocol: Literal["pin", "negotiate"] = _setting(
        "pin",
        "MCP handshake: `pin` always answers with version 2025-11-25, `negotiate` accepts the version of the client.",
    )
    transport: Literal["sdk", "legacy"] = _private(
        "sdk",
        "Wire of `cleats serve` without `--wire`: MCP (`sdk`) or the deprecated `legacy` wire.",
        env="PAIROFCLEATS_MCP_TRANSPORT",
    )
    validation_errors: Literal["protocol", "tool"] = _setting(
        "protocol", "Report invalid arguments as a JSON-RPC error (`protocol`) or as a tool result (`tool`)."
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting(
        "info", "Minimum level of log lines on stderr; `info` includes one line per call."
    )
    telemetry: Literal["local", "off"] = _setting(
        "local", "Destination of spans when no collector is configured: `local` (a file in `data_dir`) or `off`."
    )
    otlp_endpoint: str = _private(
        "", "URL of an OpenTelemetry collector; needs `cleats[otlp]`.", env="OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
    )
    assets: AssetSettings = AssetSettings()
    rpc_frame_limit: int = _setting(1 << 20, "Maximum size of a request on the rpc wire, in bytes.", least=1)
    ready_file: str = _private(
        "/tmp/mcp.ready",  # noqa: S108 - the name that the spec binds; never followed as a link
        "File that an rpc server writes when it is ready, with its pid and the time; `/dev/null` disables it.",
        env="MCP_READY_FILE",
    )
    http: HttpSettings = HttpSettings()
    database_url: str = _private(
        "",
        "URL of a PostgreSQL database that several machines share for runs, jobs, triage records and index pointers; "
        "needs `cleats[fleet]`.",
    )
    cache_dir: Path = _private(Path(), "Folder for indexes, models and downloads [default: the XDG cache folder].")
    data_dir: Path = _private(Path(), "Folder for runs, records and spans [default: the XDG data folder].")
    home: Path = _private(Path(), "Home folder of the user, where skills are searched.", env="HOME")
    config_home: Path = _private(
        Path(),
        "Configuration folder of the user, where some agents keep skills [default: `~/.config`].",
        env="XDG_CONFIG_HOME",
    )
    claude_dir: Path = _private(
        Path(), "Claude's folder with skills and plugins [default: `~/.claude`].", env="CLAUDE_CONFIG_DIR"
    )
    project_dir: Path = _private(
        Path(),
        "Default repository for code tools, and the folder from which project skills are searched upwards [default: "
        "the working folder].",
    )
    code: CodeSettings = CodeSettings()
    skills: SkillSettings = SkillSettings()
    launch: LaunchSettings = LaunchSettings()
