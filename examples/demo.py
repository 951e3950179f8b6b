"""What Cleats does, seen through the official MCP client. Run it with `make demo`."""

import json
import os
import shutil
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import anyio
from demo_launch import tour_launch
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from stage import BOLD, DIM, PLAIN, ok, say, shown, title

HERE = Path(__file__).parent
CACHE = tempfile.mkdtemp(prefix="cleats-demo-")


def server(*arguments: str) -> StdioServerParameters:
    quiet = {"CLEATS_LOG_LEVEL": "error", "CLEATS_TELEMETRY": "off", "CLEATS_CACHE_DIR": CACHE}
    assets = {"SYN_SCHEMAS_DIR": str(HERE / "assets")}
    return StdioServerParameters(
        command=sys.executable, args=list(arguments), env={**os.environ, **quiet, **assets}
    )


def text_of(result: Any) -> str:
    """The first text block of an answer."""
    return str(result.content[0].text)


async def tour_tools() -> None:
    title(1, "Start the server and connect the official MCP client")
    say(f"   {DIM}$ cleats serve --skill-dir examples/skills{PLAIN}")
    command = ("-m", "cleats", "serve", "--skill-dir", str(HERE / "skills"), "--no-plugins")
    async with Client(server(*command)) as client:
        info = client.server_info
        assert info is not None
        ok(f"connected to {info.name} {info.version}, protocol {client.protocol_version}")

        title(2, "List the tools")
        tools = (await client.list_tools()).tools
        room = max(len(tool.name) for tool in tools)
        for tool in tools:
            version = (tool.meta or {}).get("pairofcleats/schemaVersion")
            first = (tool.description or "").strip().splitlines()[0]
            say(f"   {BOLD}{tool.name:<{room}}{PLAIN} v{version}  {textwrap.shorten(first, 60)}")

        await tour_code(client)

        title(5, "Call one: every answer is an envelope with its versions")
        answer = await client.call_tool("check_status", {})
        envelope = answer.structured_content
        assert isinstance(envelope, dict)
        say(shown({"ok": envelope["ok"], "result": {"server": envelope["result"]["server"]}}))
        say(shown({"_meta": envelope["_meta"]}))

        title(6, "Check an asset against a schema: every error has its place")
        broken = json.loads((HERE / "assets/examples/drafts/Tone_Broken.json").read_text())
        checked = await client.call_tool("validate_asset", {"asset": broken, "schema": "tone"})
        verdict = checked.structured_content
        assert isinstance(verdict, dict)
        for error in verdict["errors"]:
            say(f"   {error['path']:<20} {error['msg']}")

        title(7, "Load a skill: by its name, or by a name that is nearly right")
        skill = await client.call_tool("skill", {"name": "release-notes"})
        for line in text_of(skill).splitlines()[3:7]:
            say(f"   {DIM}{line}{PLAIN}")
        wrong = await client.call_tool("skill", {"name": "relase-note"})
        ok(" ".join(text_of(wrong).split()))

        title(8, "Call a tool wrongly: the error says what to do")
        try:
            await client.call_tool("check_status", {"verbose": True})
        except Exception as error:  # noqa: BLE001 - the SDK's MCPError, shown as it is
            ok(str(error))


async def tour_code(client: Client) -> None:
    title(3, "Index this checkout, in processes of its own")

    heard: list[str] = []

    async def progress(_done: float, _total: float | None, message: str | None) -> None:
        heard.append(message or "")
        if len(heard) % 8 == 1:  # it comes four times a second; a log needs less
            say(f"   {DIM}{message}{PLAIN}")

    arguments = {"repoPath": str(HERE.parent)}
    built = result_of(await client.call_tool("build_index", arguments, progress_callback=progress))
    ok(f"{built['files']['total']} files, {sum(built['chunks'].values())} pieces to find")

    title(4, "Ask it: in words, and by what the code does")
    for question in (
        {"query": "end every process of a cancelled call", "mode": "code", "path": "src/**"},
        {"query": "dispatcher", "type": "method", "awaits": "run", "lang": "python"},
        {"query": "-test", "riskFlow": "->", "mode": "code", "path": "src/**"},
    ):
        say(f"   {DIM}search {json.dumps(question)}{PLAIN}")
        found = result_of(await client.call_tool("search", {**arguments, **question, "top": 3}))
        for hit in found["code"]:
            say(f"   {BOLD}{hit['file']}:{hit['startLine']}{PLAIN}  {hit['kind']} {hit['name']}")


def result_of(answer: Any) -> dict[str, Any]:
    """What an envelope holds."""
    envelope = answer.structured_content
    assert envelope["ok"], envelope
    result: dict[str, Any] = envelope["result"]
    return result


async def tour_cancel() -> None:
    title(9, "Cancel a call that runs a tree of processes")
    label = f"cleats-demo-{os.getpid()}"
    heard: list[str] = []
    async with Client(server(str(HERE / "slow" / "server.py"))) as client:

        async def progress(_done: float, _total: float | None, message: str | None) -> None:
            heard.append(message or "")
            say(f"   {DIM}{message}{PLAIN}")

        async with anyio.create_task_group() as tasks:

            async def build() -> None:
                arguments = {"label": label}
                await client.call_tool("slow_build", arguments, progress_callback=progress)

            tasks.start_soon(build)
            with anyio.fail_after(30):
                while len(heard) < 3:
                    await anyio.sleep(0.05)
            before = processes(label)
            ok(f"{before} processes are at work; cancelling")
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            while processes(label):
                await anyio.sleep(0.02)
        ok("none of them is left, not even the one in a session of its own")


def processes(label: str) -> int:
    """How many processes carry the build's mark in their environment, wherever they moved to."""
    found = 0
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            found += f"BUILD_LABEL={label}".encode() in entry.read_bytes().split(b"\0")
        except OSError:  # it has just ended, or is not ours to read
            continue
    return found


async def main() -> None:
    say(f"{BOLD}Cleats{PLAIN}: the tool server for coding agents")
    try:
        await tour_tools()
        await tour_cancel()
        await tour_launch(server, 10)
    finally:
        shutil.rmtree(CACHE, ignore_errors=True)
    say(f"\nNext: {BOLD}.venv/bin/cleats client-config claude-code{PLAIN} registers it.")


if __name__ == "__main__":
    anyio.run(main)
