"""The tool `search` on a server: without an index, stale, refreshed, replaced, withdrawn."""

import asyncio
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
from cleats.runtime.call import Call
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.progress import Progress, Report
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings
from cleats.toolsets.code.indexing import access
from cleats.toolsets.code.indexing.run import build as build_index
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.search import tool
from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.engines import Engines
from cleats.toolsets.code.store.generations import Lease, Shelf
from tests.index_world import QUICK, World
from tests.requirements import requirement
from tests.search_world import build, shop
from tests.waiting import LIMIT, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.write("app/core.py", "def first():\n    return 1\n")
    return world


@asynccontextmanager
async def server(world: World) -> AsyncIterator[Dispatcher]:
    made = Settings(
        cache_dir=world.cache,
        project_dir=world.root,
        index_workers=1,
        index_lint="off",
        telemetry="off",
    )
    vitals = Vitals()
    async with app.dispatching(made, app.toolsets(made, ["code"], vitals), vitals) as dispatcher:
        yield dispatcher


async def called(dispatcher: Dispatcher, tool: str, **given: Any) -> tuple[Call, Outcome]:
    call = Call(tool=tool, arguments=given)
    return call, await dispatcher.dispatch(call)


async def found(dispatcher: Dispatcher, query: str, **given: Any) -> list[str]:
    _, outcome = await called(dispatcher, "search", query=query, **given)
    assert isinstance(outcome, Done), outcome
    return [hit["name"] for hit in outcome.result["code"]]


async def test_without_an_index_the_answer_says_how_to_make_one(world: World) -> None:
    async with server(world) as dispatcher:
        call, outcome = await called(dispatcher, "search", query="first")

    assert isinstance(outcome, Failed)
    assert outcome.error.code is ErrorCode.NO_INDEX
    assert "build_index" in outcome.error.hint
    assert call.meta.repo == str(world.root)


@requirement("a:tools:search", "b:tools:required:search")
async def test_a_search_answers_from_the_index_and_says_when_it_is_stale(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "RECENT", 0.0)
    monkeypatch.setattr(tool, "PATIENCE", 60.0)
    await asyncio.to_thread(world.build)
    async with server(world) as dispatcher:
        fresh, _ = await called(dispatcher, "search", query="first")
        world.write("app/more.py", "def second():\n    return 2\n")
        stale, outcome = await called(dispatcher, "search", query="second")

    warnings = stale.meta.warnings
    assert fresh.meta.warnings == []
    assert isinstance(outcome, Done)
    assert "second" not in [hit["name"] for hit in outcome.result["code"]]
    assert [warning["code"] for warning in warnings] == ["index_stale"]
    assert "refresh=true" in warnings[0]["hint"]


@requirement("b:http:search-stream", "b:progress:mapping")
async def test_a_search_says_that_it_runs_to_a_caller_who_asked(world: World) -> None:
    await asyncio.to_thread(world.build)
    said: list[tuple[str, str]] = []

    async def send(report: Report) -> None:
        said.append((report.phase, report.message))

    async with server(world) as dispatcher:
        call = Call(tool="search", arguments={"query": "first"}, reporter=Progress(send))
        await dispatcher.dispatch(call)

    assert said == [("search", "Running search.")]


async def test_refresh_brings_the_index_up_to_date_first(world: World) -> None:
    async with server(world) as dispatcher:
        assert await found(dispatcher, "first", refresh=True) == ["first"]
        world.write("app/more.py", "def second():\n    return 2\n")

        assert await found(dispatcher, "second", ann=False, refresh=True) == ["second"]
        assert await found(dispatcher, "second", ann=False) == ["second"]


async def test_refresh_keeps_to_the_modes_that_an_index_has(world: World) -> None:
    world.write("README.md", "# Title\n\nSome words about it.\n")
    await asyncio.to_thread(world.build, modes=("code",))
    async with server(world) as dispatcher:
        _, outcome = await called(dispatcher, "search", query="words", refresh=True)

    assert isinstance(outcome, Done)
    assert outcome.result["prose"] == []


@requirement("a:arguments:none-ignored", "b:search:ann")
async def test_meaning_that_was_asked_for_and_is_not_in_the_index_is_said(world: World) -> None:
    await asyncio.to_thread(world.build, vectors=False)
    async with server(world) as dispatcher:
        outcomes = [
            (await called(dispatcher, "search", query="first", ann=ann))[1]
            for ann in (True, None, False)
        ]

    said = [
        [note["code"] for note in outcome.result["stats"].get("notes", [])]
        for outcome in outcomes
        if isinstance(outcome, Done)
    ]
    assert said == [["no_vectors"], [], []]


async def test_bad_arguments_never_reach_an_index(world: World) -> None:
    async with server(world) as dispatcher:
        _, unknown = await called(dispatcher, "search", query="a", nonsense=1)
        _, empty = await called(dispatcher, "search", query="")
        _, blank = await called(dispatcher, "search", query="  ")
        _, broken = await called(dispatcher, "search", query='a AND "b')
        _, top = await called(dispatcher, "search", query="a", top=1001)

    for outcome in (unknown, empty, top):
        assert isinstance(outcome, Rejected)
        assert outcome.error.code is ErrorCode.INVALID_REQUEST
    for outcome in (blank, broken):
        assert isinstance(outcome, Failed)
        assert outcome.error.code is ErrorCode.INVALID_REQUEST
        assert outcome.error.details[0]["instancePath"] == "/query"


@pytest.mark.parametrize("top", [0, -1, -(10**30)])
async def test_a_number_of_hits_below_one_is_one(world: World, top: int) -> None:
    await asyncio.to_thread(world.build)

    async with server(world) as dispatcher:
        _, outcome = await called(dispatcher, "search", query="first", mode="code", top=top)

    assert isinstance(outcome, Done)
    assert len(outcome.result["code"]) == 1


async def test_many_searches_at_once_while_the_index_is_replaced(world: World) -> None:
    await asyncio.to_thread(world.build)

    def builds() -> None:
        for number in range(3):
            world.write(f"app/new{number}.py", f"def new{number}():\n    return 1\n")
            world.build()

    async with server(world) as dispatcher:

        async def searches() -> list[list[str]]:
            return [await found(dispatcher, "first") for _ in range(20)]

        *lists, _ = await asyncio.gather(searches(), searches(), asyncio.to_thread(builds))

    assert all(names[:1] == ["first"] for each in lists for names in each)


async def test_a_withdrawn_search_stops(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def slow(_engine: Engine, _request: Any, given_up: Any) -> Any:
        begun.set()
        until(given_up)
        stopped.set()

    await asyncio.to_thread(world.build)
    async with server(world) as dispatcher:
        monkeypatch.setattr(Engine, "search", slow)
        call = Call(tool="search", arguments={"query": "first"})
        running = asyncio.create_task(dispatcher.dispatch(call))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        call.cancel()

        assert isinstance(await running, Cancelled)
        assert await asyncio.to_thread(stopped.wait, LIMIT)


class Borrowed:
    """A lock that tells whether it was given back."""

    released = False

    def release(self) -> None:
        self.released = True


def lease(folder: Path) -> Lease:
    return Lease(folder, Borrowed())  # type: ignore[arg-type]


def test_an_old_generation_is_held_until_its_last_search_ends(tmp_path: Path) -> None:
    old, new = lease(build(tmp_path / "1", shop())), lease(build(tmp_path / "2", shop()))
    engines = Engines()

    with engines.using("shop", "1", lambda: old) as first:
        with engines.using("shop", "1", lambda: pytest.fail("it is open")) as again:
            assert again is first
        with engines.using("shop", "2", lambda: new) as second:
            assert second is not first
        assert not old._lock.released  # type: ignore[attr-defined]

    assert old._lock.released  # type: ignore[attr-defined]
    assert not new._lock.released  # type: ignore[attr-defined]
    engines.close()
    assert new._lock.released  # type: ignore[attr-defined]


def test_a_generation_that_cannot_be_opened_is_given_back(tmp_path: Path) -> None:
    broken = lease(tmp_path / "nothing")
    engines = Engines()

    with pytest.raises(apsw.CantOpenError), engines.using("shop", "1", lambda: broken):
        pass

    assert broken._lock.released  # type: ignore[attr-defined]


@requirement("b:search:repoPath")
async def test_another_repository_is_searched_by_its_path(world: World, tmp_path: Path) -> None:
    other = World(tmp_path / "other")
    other.write("b.py", "def elsewhere():\n    return 1\n")
    await asyncio.to_thread(
        build_index, other.root, Shelf(world.cache, Repository(other.root)), QUICK, lambda _: None
    )
    async with server(world) as dispatcher:
        named = await found(dispatcher, "elsewhere", repoPath=str(other.root))
        _, missing = await called(dispatcher, "search", query="a", repoPath=str(tmp_path / "none"))

    assert named == ["elsewhere"]
    assert isinstance(missing, Failed)
    assert missing.error.code is ErrorCode.INVALID_REQUEST
