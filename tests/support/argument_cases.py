"""One case for every argument of every tool: two values, and the place where their effects differ.

A case calls its tool with the first value and with the second, each with the same other arguments, and looks at one
place of what can be observed: the answer, the error code, the files, a record that was written, the request that was
sent, or the answer of another tool afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from tests.support.polyglot import COMMON_CASES

WorldName = Literal["shop", "fresh", "launch"]
"""shop: one index of the polyglot shop, which no case changes. fresh: a small repository for each call. launch: one
server with runs."""

ABSENT: Final = object()
"""The argument is left out."""


@dataclass(frozen=True)
class Named:
    """A value that the world knows by a name, such as the id of a run."""

    name: str


@dataclass(frozen=True)
class ArgumentCase:
    """Two values of an argument whose effects differ in one place."""

    tool: str
    argument: str
    first: Any
    second: Any
    differs: str
    """A path into the observation: code, answer.key, files, record.key, requests, after.key."""
    base: dict[str, Any] = field(default_factory=dict)
    world: WorldName = "shop"
    before: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Calls that prepare the world."""
    prepare: Callable[[Any], object] | None = None
    """Changes the files of the world after those calls."""
    after: tuple[str, dict[str, Any]] | None = None
    """A call whose answer is observed too."""

    @property
    def id(self) -> str:
        return f"{self.tool}.{self.argument}"


def _search(argument: str, first: Any, second: Any = ABSENT, differs: str = "answer.code", **base: Any) -> ArgumentCase:
    query = {} if argument == "query" else {"query": "-nowheretobefound", "top": 200}
    if argument == "top":
        del query["top"]
    return ArgumentCase("search", argument, first, second, differs, {**query, "mode": "code", **base})


DAYS_SINCE_2023 = (datetime.now(UTC) - datetime(2023, 1, 1, tzinfo=UTC)).days

SEARCH_CASES = [
    *(_search(name, case.value, lang="python") for name, case in COMMON_CASES.items()),
    _search("import", "flask"),
    _search("query", "tally", "hidden"),
    _search("repoPath", Named("other")),
    _search("workspacePath", Named("workspace")),
    ArgumentCase("search", "mode", "code", "prose", "answer.prose", {"query": "refunds"}),
    _search("case", True, False, query="TALLY"),
    _search("caseTokens", True, False, query="TALLY"),
    _search("ann", True, False, query="sum of all prices"),
    _search("backend", "tantivy", "memory", query="order total", explain=True),
    _search("path", "desk.go"),
    _search("file", "desk.go"),
    _search("ext", "go"),
    _search("lang", "go"),
    _search("caseFile", True, False, file="DESK.GO"),
    _search("branch", "none-such", "main"),
    _search("author", "grace"),
    _search("chunkAuthor", "grace"),
    _search("churnMin", 60),
    _search("modifiedAfter", "2023-01-01"),
    _search("modifiedSince", DAYS_SINCE_2023),
    _search("lint", True),
    _search("meta", "desk.owner=ada"),
    _search("metaJson", {"desk": {"limit": "10"}}),
    _search("top", 1, 5),
    _search("context", 0, 2, query="tally"),
    _search("output", "compact", "full", query="tally"),
    _search("explain", True, False, query="tally"),
    ArgumentCase("search", "context", 0, 3, "answer.code", {"query": "tally", "mode": "code", "output": "full"}),
    ArgumentCase(
        "search",
        "refresh",
        True,
        False,
        "answer.code",
        {"query": "newcomer", "mode": "code", "backend": "sqlite-fts"},  # the others read changed files anyway
        world="fresh",
        before=(("build_index", {"sqlite": True}),),
        prepare=lambda world: world.write_file("new.py", "def newcomer():\n    return 1\n"),
    ),
]

_SHOW: Final = {"path": "desk.py"}
_TRIAL: Final = {"path": Named("library")}
_WINDOWS: Final = {"platform": "windows", "arch": "arm64"}

SHOP_CASES = [
    ArgumentCase("show_file", "path", "desk.py", "desk.go", "answer.text"),
    ArgumentCase("show_file", "startLine", 3, ABSENT, "answer.startLine", _SHOW),
    ArgumentCase("show_file", "endLine", 3, ABSENT, "answer.endLine", _SHOW),
    ArgumentCase("show_file", "context", 2, 0, "answer.text", {**_SHOW, "startLine": 5}),
    ArgumentCase("show_file", "maxBytes", 20, ABSENT, "answer.text", _SHOW),
    ArgumentCase("show_file", "repoPath", Named("other"), ABSENT, "code", _SHOW),
    ArgumentCase("index_status", "repoPath", Named("other"), ABSENT, "answer.index.files"),
    ArgumentCase("config_status", "repoPath", Named("other"), ABSENT, "answer.config.repoCacheRoot"),
    ArgumentCase("report_artifacts", "repoPath", Named("other"), ABSENT, "answer.repo.cacheRoot"),
    ArgumentCase("workspace_status", "workspacePath", Named("workspace"), Named("empty workspace"), "answer.repos"),
    ArgumentCase(
        "workspace_status", "repoPath", Named("root"), ABSENT, "code", {"workspacePath": Named("empty workspace")}
    ),
    ArgumentCase("verify_extensions", "repoPath", Named("other"), ABSENT, "answer.path", {"dir": "own"}),
    ArgumentCase("verify_extensions", "provider", "none", "sqlite-vec", "code"),
    ArgumentCase("verify_extensions", "dir", "own", ABSENT, "answer.path"),
    ArgumentCase("verify_extensions", "path", Named("library"), ABSENT, "answer.exists"),
    ArgumentCase("verify_extensions", "platform", "windows", "linux", "answer.path"),
    ArgumentCase("verify_extensions", "arch", "x64", "arm64", "answer.path"),
    *(
        ArgumentCase("verify_extensions", argument, value, ABSENT, "requests", _TRIAL)
        for argument, value in {
            "module": "other0",
            "table": "vectors",
            "column": "vector",
            "encoding": "json",
            "options": "distance_metric=cosine",
        }.items()
    ),
    ArgumentCase("verify_extensions", "annMode", "built-in", "extension", "answer.load.attempted", _TRIAL),
    ArgumentCase("verify_extensions", "load", False, True, "answer.load.attempted", _TRIAL),
    ArgumentCase("download_models", "repoPath", "nowhere", ABSENT, "code"),
    ArgumentCase("download_models", "model", "another/model", ABSENT, "code"),
    ArgumentCase("download_models", "cacheDir", "models", ABSENT, "answer.available"),
    ArgumentCase("cache_gc", "maxBytes", 0, ABSENT, "answer.removals", {"dryRun": True}),
    ArgumentCase("cache_gc", "maxGb", 0, ABSENT, "answer.removals", {"dryRun": True}),
    ArgumentCase("cache_gc", "maxAgeDays", 0, ABSENT, "answer.removals", {"dryRun": True}),
    ArgumentCase("cache_gc", "repoPath", Named("other"), ABSENT, "answer.totals.repos", {"dryRun": True}),
    ArgumentCase("clean_artifacts", "all", True, False, "answer.targets", {"dryRun": True}),
    ArgumentCase("clean_artifacts", "repoPath", Named("other"), ABSENT, "answer.targets", {"dryRun": True}),
    ArgumentCase("skill", "name", "brewing", "baking", "answer"),
    ArgumentCase("skill_file", "name", "brewing", "baking", "answer", {"path": "SKILL.md"}),
    ArgumentCase("skill_file", "path", "SKILL.md", ABSENT, "answer", {"name": "brewing"}),
    ArgumentCase("skill_search", "query", "tea", "bread", "answer"),
    ArgumentCase("skill_search", "limit", 1, ABSENT, "answer", {"query": "knows"}),
    ArgumentCase("skill_diagnostics", "name", "broken", "brewing", "answer"),
    ArgumentCase("get_schema", "name", "tone", "light", "answer"),
    ArgumentCase("get_example", "path", "Tone_Example.json", "Light_Example.json", "answer"),
    ArgumentCase("list_examples", "component", "tone", ABSENT, "answer.examples"),
    ArgumentCase("validate_asset", "asset", {"name": "x"}, Named("tone"), "answer.ok", {"schema": "tone"}),
    ArgumentCase("validate_asset", "schema", "tone", "light", "answer.ok", {"asset": Named("tone")}),
    ArgumentCase("validate_many", "assets", [Named("tone")], [{}], "answer.ok", {"schema": "tone"}),
    ArgumentCase("validate_many", "schema", "tone", "light", "answer.ok", {"assets": [Named("tone")]}),
    ArgumentCase("diff_assets", "base", {"a": 1}, {"a": 2}, "answer.patch", {"new": {"a": 2}}),
    ArgumentCase("diff_assets", "new", {"a": 1}, {"a": 2}, "answer.patch", {"base": {"a": 1}}),
    ArgumentCase("populate_backend", "asset", Named("tone"), {"$schemaRef": "tone"}, "answer.reason"),
    ArgumentCase("populate_backend", "validate_first", False, True, "answer.reason", {"asset": {"$schemaRef": "tone"}}),
]

_INDEXED: Final[tuple[tuple[str, dict[str, Any]], ...]] = (("build_index", {"sqlite": False}),)
_WITH_SQLITE: Final[tuple[tuple[str, dict[str, Any]], ...]] = (*_INDEXED, ("build_sqlite_index", {}))
_BROKEN_ARTIFACTS: Final = "ci-artifacts/manifest.json"


def _fresh(tool: str, argument: str, first: Any, second: Any, differs: str, **options: Any) -> ArgumentCase:
    return ArgumentCase(tool, argument, first, second, differs, world="fresh", **options)


def _write(path: str, text: str = "{}") -> Callable[[Any], object]:
    return lambda world: world.write_file(path, text)


def _leave_free_space(world: Any) -> None:
    for number in range(40):
        world.write_file(f"gone/{number}.txt", f"word{number} and others\n" * 400)
    world.repository.build_index(sqlite=True)
    for path in (world.repository.root / "gone").iterdir():
        path.unlink()
    world.repository.build_index(sqlite=True)


BUILD_CASES = [
    _fresh("build_index", "repoPath", "nowhere", ABSENT, "code"),
    _fresh("build_index", "mode", "code", "prose", "answer.chunks"),
    _fresh("build_index", "incremental", True, False, "answer.published", before=_INDEXED, base={"sqlite": False}),
    _fresh("build_index", "sqlite", True, False, "answer.sqlite"),
    _fresh("build_index", "stubEmbeddings", True, False, "answer.vectors"),
    _fresh("build_index", "useArtifacts", True, False, "code", prepare=_write(_BROKEN_ARTIFACTS)),
    _fresh(
        "build_index",
        "artifactsDir",
        "elsewhere",
        ABSENT,
        "code",
        base={"useArtifacts": True},
        prepare=_write(_BROKEN_ARTIFACTS),
    ),
    _fresh("build_index", "artifactsDir", "elsewhere", ABSENT, "code"),
    _fresh("build_sqlite_index", "mode", "prose", "all", "code", before=_INDEXED),
    _fresh("build_sqlite_index", "incremental", True, False, "answer.published", before=_WITH_SQLITE),
    _fresh("build_sqlite_index", "compact", True, False, "answer.compacted", before=_INDEXED),
    *(
        _fresh("build_sqlite_index", name, "x", ABSENT, "code", before=_INDEXED)
        for name in ("codeDir", "proseDir", "out")
    ),
    _fresh("build_sqlite_index", "repoPath", "nowhere", ABSENT, "code", before=_INDEXED),
    _fresh("compact_sqlite_index", "mode", "prose", "all", "code", before=_WITH_SQLITE),
    _fresh(
        "compact_sqlite_index",
        "dryRun",
        True,
        False,
        "answer.published",
        before=_WITH_SQLITE,
        prepare=_leave_free_space,
    ),
    _fresh(
        "compact_sqlite_index",
        "keepBackup",
        True,
        False,
        "answer.backupPath",
        before=_WITH_SQLITE,
        prepare=_leave_free_space,
    ),
    _fresh("compact_sqlite_index", "repoPath", "nowhere", ABSENT, "code", before=_WITH_SQLITE),
    _fresh("cache_gc", "dryRun", True, False, "files", base={"maxBytes": 0}, before=_INDEXED),
    _fresh("clean_artifacts", "dryRun", True, False, "files", before=_INDEXED),
    _fresh("bootstrap", "skipInstall", True, ABSENT, "answer.steps.install.manifests", base={"skipIndex": True}),
    _fresh("bootstrap", "skipDicts", True, ABSENT, "answer.steps.dictionaries.lists", base={"skipIndex": True}),
    _fresh("bootstrap", "skipIndex", True, False, "files"),
    _fresh("bootstrap", "skipArtifacts", True, False, "code", prepare=_write(_BROKEN_ARTIFACTS)),
    _fresh("bootstrap", "skipTooling", True, False, "answer.steps.tooling.found", base={"skipIndex": True}),
    _fresh("bootstrap", "withSqlite", True, False, "after.sqlite.exists", after=("index_status", {})),
    _fresh("bootstrap", "incremental", True, False, "answer.steps.index.published", before=(("bootstrap", {}),)),
    _fresh("bootstrap", "repoPath", "nowhere", ABSENT, "code", base={"skipIndex": True}),
]

_WORDS: Final = {"url": "de=words.txt"}
_LIBRARY: Final = {"url": "vec0.dll", **_WINDOWS}


def _change_sources(world: Any) -> None:
    world.write_file("words.txt", "eins\nzwei\ndrei\n")
    world.write_file("vec0.dll", "MZ and more")


DOWNLOAD_CASES = [
    _fresh("download_dictionaries", "repoPath", "nowhere", ABSENT, "code", base=_WORDS),
    _fresh("download_dictionaries", "lang", "de", ABSENT, "files", base={"url": ["de=words.txt", "nl=words.txt"]}),
    _fresh("download_dictionaries", "url", "de=words.txt", "nl=words.txt", "files"),
    _fresh("download_dictionaries", "dir", "lists", ABSENT, "files", base=_WORDS),
    *(
        _fresh(tool, "update", True, False, differs, before=((tool, base),), prepare=_change_sources, base=platform)
        for tool, base, platform, differs in (
            ("download_dictionaries", _WORDS, {}, "answer.downloaded"),
            ("download_extensions", _LIBRARY, _WINDOWS, "answer.downloaded"),
        )
    ),
    *(
        _fresh(tool, "force", True, False, "answer.skipped", before=((tool, base),), base=base)
        for tool, base in (("download_dictionaries", _WORDS), ("download_extensions", _LIBRARY))
    ),
    _fresh("download_extensions", "repoPath", "nowhere", ABSENT, "answer", base=_LIBRARY),
    _fresh("download_extensions", "provider", "none", "sqlite-vec", "code", base=_LIBRARY),
    _fresh("download_extensions", "dir", "own", ABSENT, "answer.output", base=_LIBRARY),
    _fresh("download_extensions", "out", "own", ABSENT, "answer.output", base=_LIBRARY),
    _fresh("download_extensions", "platform", "linux", "windows", "code", base={"url": "vec0.dll", "arch": "x64"}),
    _fresh(
        "download_extensions", "arch", "x64", "arm64", "answer.output", base={"url": "vec0.dll", "platform": "windows"}
    ),
    _fresh("download_extensions", "url", "vec0.dll", "words.txt", "code", base=_WINDOWS),
]

FINDING: Final = {"cve": "CVE-2022-0001", "packageName": "pyyaml", "severity": "high", "title": "unsafe loading"}
OTHER_FINDING: Final = {"cve": "CVE-2022-0002", "packageName": "flask", "severity": "low", "title": "open redirect"}
_INGEST: Final = {"source": "generic", "inputPath": "finding.json"}
_INGESTED: Final = (("triage_ingest", _INGEST), ("triage_ingest", {**_INGEST, "inputPath": "other.json"}))
_DECISION: Final = {"finding": Named("finding"), "status": "fix"}


def _decide(argument: str, first: Any, second: Any, differs: str, **base: Any) -> ArgumentCase:
    return _fresh("triage_decision", argument, first, second, differs, base={**_DECISION, **base}, before=_INGESTED)


TRIAGE_CASES = [
    _fresh("triage_ingest", "source", "sarif", "generic", "code", base={"inputPath": "finding.json"}),
    _fresh("triage_ingest", "inputPath", "other.json", "finding.json", "record.vuln.cve", base={"source": "generic"}),
    _fresh("triage_ingest", "meta", {"service": "shop"}, ABSENT, "record.service", base=_INGEST),
    _fresh("triage_ingest", "buildIndex", True, False, "after.index.exists", base=_INGEST, after=("index_status", {})),
    _fresh(
        "triage_ingest",
        "incremental",
        True,
        False,
        "answer.index.published",
        base={**_INGEST, "buildIndex": True},
        before=(("triage_ingest", {**_INGEST, "buildIndex": True}),) * 2,
    ),
    _fresh("triage_ingest", "incremental", False, ABSENT, "code", base=_INGEST),
    _fresh(
        "triage_ingest",
        "stubEmbeddings",
        True,
        False,
        "after.vectors.available",
        base={**_INGEST, "buildIndex": True},
        after=("index_status", {}),
    ),
    _fresh("triage_ingest", "stubEmbeddings", True, ABSENT, "code", base=_INGEST),
    _fresh("triage_ingest", "repoPath", "nowhere", ABSENT, "code", base=_INGEST),
    _decide("finding", Named("other finding"), Named("finding"), "record.vuln.cve"),
    _decide("status", "accept", "fix", "record.decision.status"),
    _decide("justification", "Because.", ABSENT, "record.decision.justification"),
    _decide("reviewer", "Ann", ABSENT, "record.decision.reviewer"),
    _decide("expires", "2099-01-31", ABSENT, "record.decision.expiresAt"),
    _decide("codes", ["code_not_reachable"], ABSENT, "record.decision.justificationCodes"),
    _decide("evidence", ["app/core.py"], ABSENT, "record.decision.evidenceRefs"),
    _decide("meta", {"team": "red"}, ABSENT, "record.team"),
    _decide("repoPath", "nowhere", ABSENT, "code"),
    *(
        _fresh(
            "triage_context_pack",
            argument,
            first,
            second,
            differs,
            base={"recordId": Named("finding")} | base,
            before=(*_INDEXED, *_INGESTED),
        )
        for argument, first, second, differs, base in (
            ("recordId", Named("other finding"), Named("finding"), "answer.finding.vuln", {}),
            ("outPath", "pack.json", ABSENT, "files", {}),
            ("ann", True, False, "answer.repoEvidence.queries", {}),
            ("stubEmbeddings", True, False, "answer.repoEvidence.queries", {}),
            ("repoPath", "nowhere", ABSENT, "code", {}),
        )
    ),
]

_RUN: Final = {"run_id": Named("run")}
UNKNOWN_RUN_ID: Final = "r_2000-01-01T00-00-00Z_00000000"


def _launch(tool: str, argument: str, first: Any, second: Any, differs: str, **base: Any) -> ArgumentCase:
    return ArgumentCase(f"launch_{tool}", argument, first, second, differs, base, world="launch")


LAUNCH_CASES = [
    _launch("start_run", "run_config", {}, Named("config"), "code"),
    _launch("start_run", "idempotency_key", "first", ABSENT, "answer.run_id", run_config=Named("config")),
    _launch("start_run_from_github_repo_url", "github_repo_url", "https://example.org/x", Named("repository"), "code"),
    _launch(
        "start_run_from_github_repo_url",
        "idempotency_key",
        "repository",
        ABSENT,
        "answer.run_id",
        github_repo_url=Named("repository"),
    ),
    _launch("start_run_from_product_url", "url", "https://example.org/3d/en/go/", Named("product"), "code"),
    _launch("start_run_from_product_url", "idempotency_key", "product", ABSENT, "answer.run_id", url=Named("product")),
    *(
        _launch(tool, "run_id", UNKNOWN_RUN_ID, Named("run"), "answer.error.details")
        for tool in ("get_status", "validate", "fix_next", "open_pr", "resume")
    ),
    _launch("cancel", "run_id", UNKNOWN_RUN_ID, Named("other run"), "code"),
    _launch("get_artifact", "run_id", UNKNOWN_RUN_ID, Named("run"), "code", artifact_name="run_config.yaml"),
    _launch("get_artifact", "artifact_name", "none.txt", "run_config.yaml", "code", **_RUN),
    _launch("list_runs", "filter", {"product_slug": "none"}, ABSENT, "answer.runs"),
    _launch("list_runs", "limit", 1, ABSENT, "answer.runs"),
    _launch("list_runs", "cursor", Named("cursor"), ABSENT, "answer.runs", limit=1),
]


def _explore(tool: str, argument: str, first: Any, second: Any = ABSENT, **base: Any) -> ArgumentCase:
    return ArgumentCase(tool, argument, first, second, "answer" if argument == "repo" else "answer.result", base)


_TALLY: Final = {"name": "tally"}

EXPLORE_CASES = [
    _explore("find_code", "query", "tally", "hidden"),
    _explore("find_code", "path", "desk.go", query="tally"),
    _explore("find_code", "language", "go", query="tally"),
    _explore("find_code", "kind", "class", query="tally"),
    _explore("find_code", "limit", 1, query="tally"),
    _explore("find_code", "offset", 2, query="tally"),
    _explore("find_code", "tokens", 200, query="tally", limit=10),
    _explore("find_code", "repo", Named("other"), query="tally"),
    _explore("grep_code", "pattern", "tally", "hidden"),
    _explore("grep_code", "regex", True, False, pattern="tal+y"),
    _explore("grep_code", "ignore_case", True, False, pattern="TALLY"),
    _explore("grep_code", "path", "desk.go", pattern="tally"),
    _explore("grep_code", "files_only", True, False, pattern="tally"),
    _explore("grep_code", "context", 1, 0, pattern="tally"),
    _explore("grep_code", "offset", 2, pattern="tally"),
    _explore("grep_code", "tokens", 200, pattern="tally"),
    _explore("grep_code", "repo", Named("other"), pattern="tally"),
    _explore("read_symbol", "name", "tally", "plain"),
    _explore("read_symbol", "path", "desk.go", **_TALLY),
    _explore("read_symbol", "tokens", 200, name="OrderDesk", path="desk.py"),
    _explore("read_symbol", "repo", Named("other"), **_TALLY),
    _explore("find_references", "name", "lookup", "plain"),
    _explore("find_references", "direction", "callees", "callers", name="fetch_order"),
    _explore("find_references", "kind", "call", "import", name="lookup"),
    _explore("find_references", "path", "desk.go", name="lookup"),
    _explore("find_references", "offset", 2, name="lookup"),
    _explore("find_references", "tokens", 200, name="lookup"),
    _explore("find_references", "repo", Named("other"), name="lookup"),
    _explore("outline", "path", "desk.py", "desk.go"),
    _explore("outline", "tokens", 200),
    _explore("outline", "repo", Named("other")),
    _explore("read_lines", "path", "desk.py", "desk.go"),
    _explore("read_lines", "start", 5, path="desk.py"),
    _explore("read_lines", "end", 5, path="desk.py"),
    _explore("read_lines", "tokens", 200, path="desk.py"),
    _explore("read_lines", "repo", Named("other"), path="desk.py"),
]

ARGUMENT_CASES = [
    *EXPLORE_CASES,
    *SEARCH_CASES,
    *SHOP_CASES,
    *BUILD_CASES,
    *DOWNLOAD_CASES,
    *TRIAGE_CASES,
    *LAUNCH_CASES,
]
