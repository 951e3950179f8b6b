"""The table of contents: what the tools are called, take and answer."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import anyio.to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context, Hints, Tool, Toolset, arguments
from cleats.settings import Settings
from cleats_todo.journal import Journal

SCHEMA_VERSION = "1.0.0"
"""The contract of this toolset. `cleats contract check --toolset todo` says when it must rise."""

ITEM = {
    "type": "object",
    "required": ["id", "text", "done"],
    "properties": {
        "id": {"type": "string"},
        "text": {"type": "string"},
        "done": {"type": "boolean"},
    },
}


class Todo:
    """The tools over one journal. Files are read and written in threads: a disk may be slow."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def add(self, given: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        item = await anyio.to_thread.run_sync(self._journal.add, given["text"])
        return {"item": asdict(item)}

    async def show(self, given: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        items = await anyio.to_thread.run_sync(self._journal.items)
        return {"items": [asdict(each) for each in items if given["all"] or not each.done]}

    async def finish(self, given: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        item = await anyio.to_thread.run_sync(self._journal.finish, given["id"])
        if item is None:
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"nothing to do has the id {given['id']!r}",
                hint="todo_list shows the ids.",
            )
        return {"item": asdict(item)}

    def tools(self) -> list[Tool]:
        """List the tools."""
        return [
            Tool(
                name="todo_add",
                title="Add something to do",
                description="Add one thing to the list of things to do, which all agents share.",
                input=arguments(
                    {
                        "text": {
                            "type": "string",
                            "minLength": 1,
                            "maxLength": 500,
                            "description": "What is to be done, in a sentence.",
                        }
                    },
                    required=["text"],
                ),
                output={"type": "object", "required": ["item"], "properties": {"item": ITEM}},
                hints=Hints(read_only=False, idempotent=False),
                timeout=10,
                run=self.add,
                examples=({"arguments": {"text": "Write the release notes."}},),
            ),
            Tool(
                name="todo_list",
                title="List what is to do",
                description="List what is still to be done, the oldest first.",
                input=arguments(
                    {
                        "all": {
                            "type": "boolean",
                            "default": False,
                            "description": "List what is done as well.",
                        }
                    }
                ),
                output={
                    "type": "object",
                    "required": ["items"],
                    "properties": {"items": {"type": "array", "items": ITEM}},
                },
                timeout=10,
                run=self.show,
                examples=({"arguments": {}}, {"arguments": {"all": True}}),
            ),
            Tool(
                name="todo_done",
                title="Mark something as done",
                description="Mark one thing on the list as done. Doing it twice changes nothing.",
                input=arguments(
                    {"id": {"type": "string", "description": "As todo_add or todo_list gave it."}},
                    required=["id"],
                ),
                output={"type": "object", "required": ["item"], "properties": {"item": ITEM}},
                hints=Hints(read_only=False),
                errors=(ErrorCode.NOT_FOUND,),
                timeout=10,
                run=self.finish,
                examples=({"arguments": {"id": "3f9c2a10"}},),
            ),
        ]


def toolset(settings: Settings) -> Toolset:
    """Create the toolset; the entry point names this function."""
    journal = Journal(settings.data_dir / "todo" / "items.jsonl")
    return Toolset(
        name="todo",
        purpose="Keep a list of things to do that agents share.",
        schema_version=SCHEMA_VERSION,
        tools=Todo(journal).tools(),
    )
