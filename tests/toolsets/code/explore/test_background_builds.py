"""Tests of the builds that a server starts by itself: they outlive the call and end with the server."""

from pathlib import Path

import anyio
import pytest

from cleats import app
from cleats.contract.outcome import Done
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
    async with app.open_dispatcher(settings, app.load_toolsets(settings, ["explore"], status), status) as dispatcher:
        first = await find_code(dispatcher)
        with anyio.fail_after(240):
            while not has_index(client):
                await anyio.sleep(0.05)
        with anyio.fail_after(240):
            while "No index yet" in (later := await find_code(dispatcher)):
                await anyio.sleep(0.05)

    assert "No index yet (being built" in first
    assert "charge_card" in first
    assert "charge_card" in later


async def test_nothing_is_built_where_the_setting_is_off(client: ExploreClient) -> None:
    settings, status = build_settings(client, "off"), ServerStatus()
    async with app.open_dispatcher(settings, app.load_toolsets(settings, ["explore"], status), status) as dispatcher:
        answer = await find_code(dispatcher)

    assert "being built" not in answer
    assert not (client.folder / "cache").exists() or not has_index(client)


async def test_a_build_ends_with_the_server_and_leaves_nothing_half_done(client: ExploreClient) -> None:
    settings, status = build_settings(client, "on"), ServerStatus()
    async with app.open_dispatcher(settings, app.load_toolsets(settings, ["explore"], status), status) as dispatcher:
        await find_code(dispatcher)

    await anyio.to_thread.run_sync(client.build_index)  # the lock of the stopped build is free
    assert has_index(client)
