"""A tour of Cleats with the official MCP client. Run it with `make demo`."""

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
from stage import (
    BOLD_STYLE,
    DIM_STYLE,
    RESET_STYLE,
    elapsed_seconds,
    format_json,
    print_line,
    print_success,
    print_title,
)

EXAMPLES_FOLDER = Path(__file__).parent
CACHE_FOLDER = tempfile.mkdtemp(prefix="cleats-demo-")


def build_server_parameters(*arguments: str) -> StdioServerParameters:
    quiet = {"CLEATS_LOG_LEVEL": "error", "CLEATS_TELEMETRY": "off", "CLEATS_CACHE_DIR": CACHE_FOLDER}
    assets = {"SYN_SCHEMAS_DIR": str(EXAMPLES_FOLDER / "assets")}
    return StdioServerParameters(command=sys.executable, args=list(arguments), env={**os.environ, **quiet, **assets})


def extract_text(result: Any) -> str:
    """Return the first text block of an answer."""
    return str(result.content[0].text)


async def tour_tools() -> None:
    print_title(1, "Start the server and connect the official MCP client")
    print_line(f"   {DIM_STYLE}$ cleats serve --skill-dir examples/skills{RESET_STYLE}")
    command = ("-m", "cleats", "serve", "--skill-dir", str(EXAMPLES_FOLDER / "skills"), "--no-plugins")
    async with Client(build_server_parameters(*command)) as client:
        info = client.server_info
        assert info is not None
        print_success(f"connected to {info.name} {info.version}, protocol {client.protocol_version}")

        print_title(2, "List the tools")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        names = textwrap.fill(", ".join(tools), 95, initial_indent="   ", subsequent_indent="   ")
        print_line(f"{DIM_STYLE}{names}{RESET_STYLE}")
        print_success(
            f"{len(tools)} tools; an agent that `cleats install` registers gets 7 of them, such as find_code:"
        )
        print_line(textwrap.indent(textwrap.fill(tools["find_code"].description or "", 95), "   "))

        await tour_code(client)

        print_title(5, "Call a tool: every answer has the same envelope, with versions")
        answer = await client.call_tool("check_status", {})
        envelope = answer.structured_content
        assert isinstance(envelope, dict)
        print_line(format_json({"ok": envelope["ok"], "result": {"server": envelope["result"]["server"]}}))
        print_line(format_json({"_meta": envelope["_meta"]}))

        print_title(6, "Validate an asset: every error has a JSON Pointer")
        broken = json.loads((EXAMPLES_FOLDER / "assets/examples/drafts/Tone_Broken.json").read_text())
        checked = await client.call_tool("validate_asset", {"asset": broken, "schema": "tone"})
        verdict = checked.structured_content
        assert isinstance(verdict, dict)
        for error in verdict["errors"]:
            print_line(f"   {error['path']:<20} {error['msg']}")

        print_title(7, "Load a skill by its name; a misspelt name gets a suggestion")
        skill = await client.call_tool("skill", {"name": "release-notes"})
        for line in extract_text(skill).splitlines()[3:7]:
            print_line(f"   {DIM_STYLE}{line}{RESET_STYLE}")
        wrong = await client.call_tool("skill", {"name": "relase-note"})
        print_success(" ".join(extract_text(wrong).split()))

        print_title(8, "Call a tool with an unknown argument: the error says what to do")
        try:
            await client.call_tool("check_status", {"verbose": True})
        except Exception as error:  # noqa: BLE001 - the SDK's MCPError, shown as it is
            print_success(str(error))


async def tour_code(client: Client) -> None:
    print_title(3, "Index this checkout: 20 to 90 s")

    messages: list[str] = []

    async def print_progress(_done: float, _total: float | None, message: str | None) -> None:
        messages.append(message or "")
        if len(messages) % 8 == 1:  # there are four messages a second; one line in two seconds is enough
            print_line(f"   {DIM_STYLE}{(message or '').rpartition(']')[2].strip()}{RESET_STYLE}")

    arguments = {"repoPath": str(EXAMPLES_FOLDER.parent)}
    built = extract_result(await client.call_tool("build_index", arguments, progress_callback=print_progress))
    print_success(f"{built['files']['total']:,} files, {sum(built['chunks'].values()):,} chunks")

    print_title(4, "Search in words, and by what the code does")
    for question in (
        {"query": "kill a process and all of its descendants", "mode": "code", "path": "src/**"},
        {"query": "find breaking changes between two JSON schemas", "mode": "code", "path": "src/**"},
        {"query": "*", "throws": "SettingError", "mode": "code", "path": "src/**"},
    ):
        print_line(f"   {DIM_STYLE}search {json.dumps(question)}{RESET_STYLE}")
        search_result = extract_result(await client.call_tool("search", {**arguments, **question, "top": 3}))
        for hit in search_result["code"]:
            print_line(f"   {BOLD_STYLE}{hit['file']}:{hit['startLine']}{RESET_STYLE}  {hit['kind']} {hit['name']}")


def extract_result(answer: Any) -> dict[str, Any]:
    """Return the result in an envelope."""
    envelope = answer.structured_content
    assert envelope["ok"], envelope
    result: dict[str, Any] = envelope["result"]
    return result


async def tour_cancel() -> None:
    print_title(9, "Cancel a call that runs a tree of processes")
    label = f"cleats-demo-{os.getpid()}"
    messages: list[str] = []
    async with Client(build_server_parameters(str(EXAMPLES_FOLDER / "slow" / "server.py"))) as client:

        async def print_progress(_done: float, _total: float | None, message: str | None) -> None:
            messages.append(message or "")
            print_line(f"   {DIM_STYLE}{message}{RESET_STYLE}")

        async with anyio.create_task_group() as tasks:

            async def build() -> None:
                arguments = {"label": label}
                await client.call_tool("slow_build", arguments, progress_callback=print_progress)

            tasks.start_soon(build)
            with anyio.fail_after(30):
                while len(messages) < 3:
                    await anyio.sleep(0.05)
            before = count_processes(label)
            print_success(f"{before} processes are running; cancelling")
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            while count_processes(label):
                await anyio.sleep(0.02)
        print_success("all of them have ended, even the one that moved to its own session")


def count_processes(label: str) -> int:
    """Count the processes that have the label of the build in their environment."""
    count = 0
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            count += f"BUILD_LABEL={label}".encode() in entry.read_bytes().split(b"\0")
        except OSError:  # it has just ended, or is not ours to read
            continue
    return count


async def main() -> None:
    print_line(f"{BOLD_STYLE}Cleats{RESET_STYLE}: the tool server for coding agents")
    print_line("Twelve steps: one minute on an idle machine, up to three on a busy one. Most of it is the index")
    print_line("(step 3) and the launch run (step 10). Everything is written to temporary folders and to build/demo.")
    try:
        await tour_tools()
        await tour_cancel()
        await tour_launch(build_server_parameters, 10)
    finally:
        shutil.rmtree(CACHE_FOLDER, ignore_errors=True)
    print_line(f"\nDone in {elapsed_seconds():.0f} s.")
    print_line(f"Next: {BOLD_STYLE}.venv/bin/cleats install claude-code{RESET_STYLE} connects it to an agent.")


if __name__ == "__main__":
    anyio.run(main)
