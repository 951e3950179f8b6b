"""Tests of the builds that a server starts by itself: they outlive the call and end with the server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from cleats import app
from cleats.contract.errors import ErrorCode
from cleats.contract.outcome import Done, Failed, Outcome
from cleats.contract.payload import AnswerMeta
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings, make_settings
from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.repository import Repository
from tests.support.explore import ExploreClient, create_explore_client

pytestmark = pytest.mark.anyio


@pytest.fixture
def client(tmp_path: Path) -> ExploreClient:
    return create_explore_client(tmp_path)


def build_settings(client: ExploreClient, auto_index: str) -> Settings:
    folders = {"cache_dir": client.folder / "cache", "data_dir": client.folder / "data", "home": client.folder}
    return make_settings(project_dir=client.root, auto_index=auto_index, index_workers=1, index_lint="off", **folders)


def has_index(client: ExploreClient) -> bool:
    return GenerationStore(client.folder / "cache", Repository(client.root)).read_current_name() is not None


async def find_code(dispatcher: Dispatcher) -> str:
    outcome = await dispatcher.dispatch(ToolCall(tool="find_code", arguments={"query": "charge the card"}))
    assert isinstance(outcome, Done), outcome
    answer: str = outcome.result
    return answer


async def test_the_first_question_starts_a_build_that_goes_on_after_its_answer(client: ExploreClient) -> None:
    settings, status = build_settings(client, "on"), ServerStatus()
    lock = GenerationStore(client.folder / "cache", Repository(client.root)).try_build_lock()
    assert lock is not None
    async with app.open_dispatcher(settings, app.load_toolsets(settings, ["explore"], status), status) as dispatcher:
        first = await find_code(dispatcher)
        lock.release()
        with anyio.fail_after(240):
            while not has_index(client):
                await anyio.sleep(0.05)
        with anyio.fail_after(240):
            while "No index yet" in (later := await find_code(dispatcher)):
                await anyio.sleep(0.05)

    assert "No index yet (index being built: " in first
    assert "charge_card" in first
    assert "charge_card" in later


async def test_nothing_is_built_where_the_setting_is_off(client: ExploreClient) -> None:
    settings, status = build_settings(client, "off"), ServerStatus()
    async with app.open_dispatcher(settings, app.load_toolsets(settings, ["explore"], status), status) as dispatcher:
        answer = await find_code(dispatcher)

    assert "being built" not in answer
    assert not (client.folder / "cache").exists() or not has_index(client)


@asynccontextmanager
async def open_building_server(client: ExploreClient) -> AsyncIterator[Dispatcher]:
    """Serve both toolsets, with a build that waits until the block ends."""
    settings, status = build_settings(client, "on"), ServerStatus()
    toolsets = app.load_toolsets(settings, ["explore", "code"], status)
    lock = GenerationStore(client.folder / "cache", Repository(client.root)).try_build_lock()
    assert lock is not None
    async with app.open_dispatcher(settings, toolsets, status) as dispatcher:
        yield dispatcher
    lock.release()


async def search(dispatcher: Dispatcher, **arguments: object) -> tuple[Outcome, AnswerMeta]:
    meta = AnswerMeta()
    return await dispatcher.dispatch(ToolCall(tool="search", arguments=arguments, meta=meta)), meta


def list_names(outcome: Outcome) -> list[str]:
    assert isinstance(outcome, Done), outcome
    return [hit["name"] for hit in outcome.result["code"]]


async def test_search_answers_from_the_files_while_the_first_index_is_built(client: ExploreClient) -> None:
    async with open_building_server(client) as dispatcher:
        found, meta = await search(dispatcher, query="add an item to the cart")
        status = await dispatcher.dispatch(ToolCall(tool="index_status", arguments={}))

    assert list_names(found)[0] == "Cart.add_item"
    assert [warning["code"] for warning in meta.warnings] == ["index_building"]
    assert "index being built: 0 %" in meta.warnings[0]["message"]
    assert isinstance(status, Done)
    assert status.result["build"].items() >= {"percent": 0, "done": 0, "total": 0}.items()


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"type": "method"}, {"Cart.total_price", "GiftCart.total_price"}),
        ({"calls": "charge_card"}, {"pay"}),
        ({"path": "!shop", "ext": "py"}, {"test_total_price"}),
        ({"lang": "typescript"}, set()),
    ],
)
async def test_filters_hold_in_an_answer_from_the_files(
    client: ExploreClient, filters: dict[str, object], names: set[str]
) -> None:
    async with open_building_server(client) as dispatcher:
        found, _ = await search(dispatcher, query='"total_price"', mode="code", **filters)

    assert set(list_names(found)) == names


@pytest.mark.parametrize(
    "request_arguments",
    [
        {"author": "Ada"},
        {"risk": "sql"},
        {"branch": "main"},
        {"mode": "records"},
        {"backend": "memory"},
        {"query": "*"},
    ],
)
async def test_what_only_an_index_shows_is_refused_without_one(
    client: ExploreClient, request_arguments: dict[str, object]
) -> None:
    async with open_building_server(client) as dispatcher:
        outcome, _ = await search(dispatcher, **{"query": "total price", **request_arguments})

    assert isinstance(outcome, Failed)
    assert outcome.error.code is ErrorCode.NO_INDEX
    assert "being built" in outcome.error.explanation


async def test_search_needs_an_index_where_the_setting_is_off(client: ExploreClient) -> None:
    settings, status = build_settings(client, "off"), ServerStatus()
    async with app.open_dispatcher(settings, app.load_toolsets(settings, ["code"], status), status) as dispatcher:
        outcome, _ = await search(dispatcher, query="total price")

    assert isinstance(outcome, Failed)
    assert outcome.error.code is ErrorCode.NO_INDEX


async def test_a_build_ends_with_the_server_and_leaves_nothing_half_done(client: ExploreClient) -> None:
    settings, status = build_settings(client, "on"), ServerStatus()
    async with app.open_dispatcher(settings, app.load_toolsets(settings, ["explore"], status), status) as dispatcher:
        await find_code(dispatcher)

    await anyio.to_thread.run_sync(client.build_index)  # the lock of the stopped build is free
    assert has_index(client)
