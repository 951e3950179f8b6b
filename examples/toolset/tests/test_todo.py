"""The toolset as an agent meets it: installed, served by `cleats serve`, asked by a real client."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from cleats_todo.journal import Item, Journal
from mcp import Client
from mcp.client.stdio import StdioServerParameters

HERE = Path(__file__).parents[1]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "CLEATS_DATA_DIR": str(tmp_path), "CLEATS_TELEMETRY": "off"}


def test_agents_share_one_list(environ: dict[str, str]) -> None:
    async def conversation() -> None:
        command = ["-m", "cleats", "serve", "todo"]
        server = StdioServerParameters(command=sys.executable, args=command, env=environ)
        with anyio.fail_after(30):
            async with Client(server) as one, Client(server) as other:
                added = await one.call_tool("todo_add", {"text": "Water the plants."})
                item = added.structured_content["result"]["item"]
                await other.call_tool("todo_done", {"id": item["id"]})
                left = await one.call_tool("todo_list", {})
                every = await one.call_tool("todo_list", {"all": True})
                wrong = await one.call_tool("todo_done", {"id": "none"})

        assert left.structured_content["result"] == {"items": []}
        assert every.structured_content["result"] == {"items": [{**item, "done": True}]}
        assert wrong.is_error
        assert wrong.structured_content["error"]["code"] == "NOT_FOUND"

    anyio.run(conversation)


def test_the_contract_is_the_committed_one(environ: dict[str, str]) -> None:
    check = [sys.executable, "-m", "cleats", "contract", "check"]
    done = subprocess.run(check, cwd=HERE, env=environ, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_line_that_was_never_finished_costs_that_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    journal = Journal(path)
    first = journal.add("one")
    with path.open("ab") as file:
        file.write(b'\n{"id": "half", "te')
    second = journal.add("two")

    assert journal.items() == [first, second]
    assert json.loads(path.read_text().splitlines()[-1]) == {
        "id": second.id,
        "text": "two",
        "done": False,
    }
    assert journal.finish("half") is None
    assert journal.finish(first.id) == Item(first.id, "one", done=True)
