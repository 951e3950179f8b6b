"""The desk of an agent: the only commands it may use, each call counted with the bytes it returned.

`python -m bench.agents.desk RUN TASK rg ARGUMENTS…` and so on. A run allows either ripgrep and a
reader of lines, or the tools of the toolset `explore`; `answer FILE:NAME…` ends a task.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from bench.agents.tasks import load_tasks

PLAIN_COMMANDS: Final = ("rg", "lines", "answer")
CLEATS_COMMANDS: Final = (
    "find_code",
    "grep_code",
    "read_symbol",
    "find_references",
    "outline",
    "read_lines",
    "answer",
)
MAX_OUTPUT_BYTES: Final = 30_000
"""Bytes of one answer that an agent gets, as agent clients cut them."""


def run_command(run_folder: Path, task_id: str, command: str, arguments: list[str]) -> str:
    """Run one command of an agent, record it, and return its output."""
    settings = json.loads((run_folder / "run.json").read_text(encoding="utf-8"))
    allowed = CLEATS_COMMANDS if settings["tools"] == "cleats" else PLAIN_COMMANDS
    task = next(task for task in load_tasks(Path(settings["tasks"])) if task.id == task_id)
    checkout = Path(settings["checkouts"]) / task.id
    if command not in allowed:
        output = f"Unknown command {command!r}. Commands: {', '.join(allowed)}."
    elif command == "answer":
        output = "Recorded."
    else:
        output = _run_tool(settings, checkout, command, arguments)
    output = output.encode()[:MAX_OUTPUT_BYTES].decode(errors="ignore")
    entry = {"task": task_id, "command": command, "arguments": arguments, "bytes": len(output.encode())}
    with (run_folder / "calls.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps(entry) + "\n")
    return output


def _run_tool(settings: dict[str, str], checkout: Path, command: str, arguments: list[str]) -> str:
    if command == "rg":
        argv = [settings["rg"], "--color=never", *arguments]
        argv += [] if any(not word.startswith("-") for word in arguments[1:]) else ["."]
    elif command == "lines":
        try:
            path, first, last = arguments
            lines = (checkout / path).read_text(errors="replace").splitlines()
            chosen = enumerate(lines[int(first) - 1 : int(last)], int(first))
        except (OSError, ValueError) as error:
            return str(error)
        return "\n".join(f"{number}: {line}" for number, line in chosen)
    else:
        argv = [settings["cleats"], "call", command, *(arguments or ["{}"])]
    environment = os.environ | {"CLEATS_CACHE_DIR": settings["cache"]}
    completed = subprocess.run(
        argv, cwd=checkout, env=environment, capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    text = completed.stdout.decode(errors="replace")
    return text or completed.stderr.decode(errors="replace")


def main() -> int:
    """Run the command of the command line."""
    run_folder, task_id, command, *arguments = sys.argv[1:]
    print(run_command(Path(run_folder), task_id, command, arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main())
