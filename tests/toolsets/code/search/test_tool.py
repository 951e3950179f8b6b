"""The tool `search` on a server: without an index, stale, refreshed, replaced, cancelled."""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from cleats import app
from cleats.contract.errors import ErrorCode
from cleats.contract.outcome import Cancelled, Done, Failed, Outcome, Rejected
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.progress import ProgressReport, ProgressReporter
from cleats.runtime.server_status import ServerStatus
from cleats.settings import make_settings
from cleats.system.processes import blocking
from cleats.toolsets.code.index import freshness
from cleats.toolsets.code.index.build import build_index
from cleats.toolsets.code.index.generations import GenerationLease, GenerationStore
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.search import retrieval, tool
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.tool import SearchEnginePool
from tests.support.indexes import QUICK_OPTIONS, IndexedRepository
from tests.support.mcp_client import start_server
from tests.support.requirements import requirement
from tests.support.search import build_generation, build_shop_files
from tests.support.waiting import WAIT_TIMEOUT_SECONDS, wait_until

pytestmark = pytest.mark.anyio


@pytest.fixture
def world(tmp_path: Path) -> IndexedRepository:
    world = IndexedRepository(tmp_path)
    world.write_file("app/core.py", "def first():\n    return 1\n")
    return world


@asynccontextmanager
async def open_dispatcher(world: IndexedRepository) -> AsyncIterator[Dispatcher]:
    settings = make_settings(
        cache_dir=world.cache,
        project_dir=world.root,
        index_workers=1,
        index_lint="off",
        telemetry="off",
    )
    server_status = ServerStatus()
    async with app.open_dispatcher(
        settings, app.load_toolsets(settings, ["code"], server_status), server_status
    ) as dispatcher:
        yield dispatcher


async def call_tool(dispatcher: Dispatcher, tool: str, **arguments: Any) -> tuple[ToolCall, Outcome]:
    call = ToolCall(tool=tool, arguments=arguments)
    return call, await dispatcher.dispatch(call)


async def find_names(dispatcher: Dispatcher, query: str, **arguments: Any) -> list[str]:
    _, outcome = await call_tool(dispatcher, "search", query=query, **arguments)
    assert isinstance(outcome, Done), outcome
    return [hit["name"] for hit in outcome.result["code"]]


async def test_without_an_index_the_answer_says_how_to_make_one(world: IndexedRepository) -> None:
    async with open_dispatcher(world) as dispatcher:
        call, outcome = await call_tool(dispatcher, "search", query="first")

    assert isinstance(outcome, Failed)
    assert outcome.error.code is ErrorCode.NO_INDEX
    assert "build_index" in outcome.error.hint
    assert call.meta.repo == str(world.root)


async def test_without_an_index_the_answer_names_repositories_that_have_one(world: IndexedRepository) -> None:
    other = IndexedRepository(world.folder / "next", cache_name="../cache")
    other.write_file("only.py", "def only():\n    return 1\n")
    other.build_index()

    async with open_dispatcher(world) as dispatcher:
        _, outcome = await call_tool(dispatcher, "search", query="first")

    assert isinstance(outcome, Failed)
    assert outcome.error.hint.endswith(f"These have an index, for repoPath: {other.root}.")


async def test_a_full_answer_leaves_out_the_text_of_the_lowest_hits_when_it_is_too_long(
    world: IndexedRepository,
) -> None:
    for number in range(12):
        body = "".join(f"    ledger.append({number}, {line})  # {'balance ' * 8}\n" for line in range(150))
        world.write_file(f"app/part{number}.py", f"def post_{number}(ledger):\n{body}")
    await asyncio.to_thread(world.build_index)
    async with open_dispatcher(world) as dispatcher:
        _, compact = await call_tool(dispatcher, "search", query="ledger", mode="code", top=12)
        _, full = await call_tool(dispatcher, "search", query="ledger", mode="code", top=12, output="full")

    assert isinstance(full, Done)
    assert isinstance(compact, Done)
    hits = full.result["code"]
    kept = [hit for hit in hits if "text" in hit]
    assert 0 < len(kept) < len(hits) == 12
    assert hits[: len(kept)] == kept
    assert len(json.dumps(hits)) < 80_000
    assert [(hit["file"], hit["startLine"]) for hit in hits] == [
        (hit["file"], hit["startLine"]) for hit in compact.result["code"]
    ]
    assert all(hit["truncated"] for hit in hits[len(kept) :])
    [note] = full.result["stats"]["notes"]
    assert note["code"] == "text_left_out"
    assert f"{12 - len(kept)} of 12 hits" in note["message"]
    assert "show_file" in note["message"]
    assert "notes" not in compact.result["stats"]


@requirement("a:tools:search", "b:tools:required:search")
async def test_a_search_answers_from_the_index_and_changed_files_and_says_when_it_is_stale(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "FRESHNESS_CACHE_SECONDS", 0.0)
    monkeypatch.setattr(tool, "FRESHNESS_TIMEOUT_SECONDS", 60.0)
    await asyncio.to_thread(world.build_index)
    async with open_dispatcher(world) as dispatcher:
        fresh, _ = await call_tool(dispatcher, "search", query="first")
        world.write_file("app/more.py", "def second():\n    return 2\n")
        stale, outcome = await call_tool(dispatcher, "search", query="second")

    warnings = stale.meta.warnings
    assert fresh.meta.warnings == []
    assert isinstance(outcome, Done)
    assert "second" in [hit["name"] for hit in outcome.result["code"]]
    assert [warning["code"] for warning in warnings] == ["index_stale"]
    assert "refresh=true" in warnings[0]["hint"]


@requirement("b:http:search-stream")
async def test_a_search_says_that_it_runs_to_a_caller_who_asked(world: IndexedRepository) -> None:
    await asyncio.to_thread(world.build_index)
    reports: list[tuple[str, str]] = []

    async def send(report: ProgressReport) -> None:
        reports.append((report.phase, report.message))

    async with open_dispatcher(world) as dispatcher:
        call = ToolCall(tool="search", arguments={"query": "first"}, reporter=ProgressReporter(send))
        await dispatcher.dispatch(call)

    assert reports == [("search", "Running search.")]


@requirement("b:progress:mapping", "b:progress:no-extra-fields")
def test_progress_of_a_tool_is_one_message_with_the_tool_and_the_phase(world: IndexedRepository) -> None:
    world.build_index()
    environ = {"CLEATS_CACHE_DIR": str(world.cache), "CLEATS_PROJECT_DIR": str(world.root), "CLEATS_TELEMETRY": "off"}
    calls: list[tuple[str, dict[str, Any]]] = [("search", {"query": "first"}), ("bootstrap", {"skipIndex": True})]
    with start_server(
        sys.executable, "-m", "cleats", "serve", "code", home=world.folder, ready=True, **environ
    ) as peer:
        for tool_name, arguments in calls:
            peer.send_call(tool_name, tool_name, {"progressToken": tool_name}, **arguments)
            peer.wait_for_answer(tool_name)
        peer.close_input()
        notifications = peer.read_remaining()

    messages = ["[search][phase=search] Running search.", "[bootstrap][phase=tooling] looking for tools"]
    assert [frame["params"] for frame in notifications] == [
        {"progressToken": tool_name, "progress": 1, "message": message}
        for (tool_name, _), message in zip(calls, messages, strict=True)
    ]


async def test_refresh_brings_the_index_up_to_date_first(world: IndexedRepository) -> None:
    async with open_dispatcher(world) as dispatcher:
        assert await find_names(dispatcher, "first", refresh=True) == ["first"]
        world.write_file("app/more.py", "def second():\n    return 2\n")

        assert await find_names(dispatcher, "second", ann=False, refresh=True) == ["second"]
        assert await find_names(dispatcher, "second", ann=False) == ["second"]


async def test_refresh_keeps_to_the_modes_that_an_index_has(world: IndexedRepository) -> None:
    world.write_file("README.md", "# Title\n\nSome words about it.\n")
    await asyncio.to_thread(world.build_index, modes=("code",))
    async with open_dispatcher(world) as dispatcher:
        _, outcome = await call_tool(dispatcher, "search", query="words", refresh=True)

    assert isinstance(outcome, Done)
    assert outcome.result["prose"] == []


@requirement("b:search:ann")
async def test_meaning_that_was_asked_for_and_is_not_in_the_index_is_said(world: IndexedRepository) -> None:
    await asyncio.to_thread(world.build_index, vectors=False)
    async with open_dispatcher(world) as dispatcher:
        outcomes = [(await call_tool(dispatcher, "search", query="first", ann=ann))[1] for ann in (True, None, False)]

    note_codes = [
        [note["code"] for note in outcome.result["stats"].get("notes", [])]
        for outcome in outcomes
        if isinstance(outcome, Done)
    ]
    assert note_codes == [["no_vectors"], [], []]


async def test_bad_arguments_never_reach_an_index(world: IndexedRepository) -> None:
    async with open_dispatcher(world) as dispatcher:
        _, unknown = await call_tool(dispatcher, "search", query="a", nonsense=1)
        _, empty = await call_tool(dispatcher, "search", query="")
        _, blank = await call_tool(dispatcher, "search", query="  ")
        _, broken = await call_tool(dispatcher, "search", query='a AND "b')
        _, top = await call_tool(dispatcher, "search", query="a", top=1001)

    for outcome in (unknown, empty, top):
        assert isinstance(outcome, Rejected)
        assert outcome.error.code is ErrorCode.INVALID_REQUEST
    for outcome in (blank, broken):
        assert isinstance(outcome, Failed)
        assert outcome.error.code is ErrorCode.INVALID_REQUEST
        assert outcome.error.details[0]["instancePath"] == "/query"


@pytest.mark.parametrize("top", [0, -1, -(10**30)])
async def test_a_number_of_hits_below_one_is_one(world: IndexedRepository, top: int) -> None:
    await asyncio.to_thread(world.build_index)

    async with open_dispatcher(world) as dispatcher:
        _, outcome = await call_tool(dispatcher, "search", query="first", mode="code", top=top)

    assert isinstance(outcome, Done)
    assert len(outcome.result["code"]) == 1


async def test_many_searches_at_once_while_the_index_is_replaced(world: IndexedRepository) -> None:
    await asyncio.to_thread(world.build_index)

    def build_repeatedly() -> None:
        for number in range(3):
            world.write_file(f"app/new{number}.py", f"def new{number}():\n    return 1\n")
            world.build_index()

    async with open_dispatcher(world) as dispatcher:

        async def search_repeatedly() -> list[list[str]]:
            return [await find_names(dispatcher, "first") for _ in range(20)]

        *lists, _ = await asyncio.gather(search_repeatedly(), search_repeatedly(), asyncio.to_thread(build_repeatedly))

    assert all(names[:1] == ["first"] for results in lists for names in results)


async def test_a_withdrawn_search_stops(world: IndexedRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def search_slowly(_engine: SearchEngine, _request: Any) -> Any:
        begun.set()
        wait_until(blocking.is_stopped)
        stopped.set()

    await asyncio.to_thread(world.build_index)
    async with open_dispatcher(world) as dispatcher:
        monkeypatch.setattr(retrieval, "search_generation", search_slowly)
        call = ToolCall(tool="search", arguments={"query": "first"})
        running = asyncio.create_task(dispatcher.dispatch(call))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        call.cancel()

        assert isinstance(await running, Cancelled)
        assert await asyncio.to_thread(stopped.wait, WAIT_TIMEOUT_SECONDS)


class FakeLock:
    """A lock that records whether it was released."""

    released = False

    def release(self) -> None:
        self.released = True


def make_lease(folder: Path) -> GenerationLease:
    return GenerationLease(folder, FakeLock())  # type: ignore[arg-type]


def test_an_old_generation_is_held_until_its_last_search_ends(tmp_path: Path) -> None:
    old, new = (
        make_lease(build_generation(tmp_path / "1", build_shop_files())),
        make_lease(build_generation(tmp_path / "2", build_shop_files())),
    )
    engines = SearchEnginePool()

    with engines.use_engine("shop", "1", lambda: old) as first:
        with engines.use_engine("shop", "1", lambda: pytest.fail("it is open")) as reopened:
            assert reopened is first
        with engines.use_engine("shop", "2", lambda: new) as second:
            assert second is not first
        assert not old._lock.released  # type: ignore[attr-defined]

    assert old._lock.released  # type: ignore[attr-defined]
    assert not new._lock.released  # type: ignore[attr-defined]
    engines.close()
    assert new._lock.released  # type: ignore[attr-defined]


def test_a_generation_that_cannot_be_opened_is_given_back(tmp_path: Path) -> None:
    broken = make_lease(tmp_path / "nothing")
    engines = SearchEnginePool()

    with pytest.raises(apsw.CantOpenError), engines.use_engine("shop", "1", lambda: broken):
        pass

    assert broken._lock.released  # type: ignore[attr-defined]


@requirement("b:search:repoPath")
async def test_another_repository_is_searched_by_its_path(world: IndexedRepository, tmp_path: Path) -> None:
    other = IndexedRepository(tmp_path / "other")
    other.write_file("b.py", "def elsewhere():\n    return 1\n")
    await asyncio.to_thread(
        build_index, other.root, GenerationStore(world.cache, Repository(other.root)), QUICK_OPTIONS, lambda _: None
    )
    async with open_dispatcher(world) as dispatcher:
        hit_names = await find_names(dispatcher, "elsewhere", repoPath=str(other.root))
        _, missing = await call_tool(dispatcher, "search", query="a", repoPath=str(tmp_path / "none"))

    assert hit_names == ["elsewhere"]
    assert isinstance(missing, Failed)
    assert missing.error.code is ErrorCode.INVALID_REQUEST
