"""The command: `python -m bench.agents prepare | report`."""

import argparse
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.agents.tasks import LocateTask, load_tasks

PROMPT = """You locate defects in source code. For each task below, find the source file (not a test) that has to
change to fix the defect. Use only this command, once for each step:

  {command} TASK COMMAND [ARGUMENTS]

Commands:
{commands}

End each task with `answer FILE [FILE]`: at most three files, the likeliest first, relative to the repository.
Read as little as you need: what counts is a right first file, then few calls and few bytes. Do not use any
other tool, and do not look at the repositories in any other way.

Tasks:
{tasks}
"""
PLAIN_HELP = """  rg ARGUMENTS             ripgrep in the repository, such as: rg -n 'some text' src
  lines FILE FIRST LAST    lines of a file
  answer FILE [FILE...]    your answer"""
CLEATS_HELP = """  find_code '{"query": "..."}'       code by words, name or error message
  grep_code '{"pattern": "..."}'     every line with a text; "regex": true for a pattern; "path": "src"
  read_symbol '{"name": "..."}'      the source of a function, class or method
  find_references '{"name": "..."}'  uses of a symbol; "direction": "callees" for what it calls
  outline '{"path": "..."}'          declarations of a file, or a map of a folder
  read_lines '{"path": "...", "start": 1, "end": 40}'
  answer FILE [FILE...]              your answer"""


def main() -> int:
    """Return 0 if the command could be run."""
    options = _parse_options()
    if options.command == "prepare":
        _prepare_run(options)
    elif options.command == "prompt":
        print(_write_prompt(options.run, options.tasks))
    else:
        print(render_report(options.runs))
    return 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.agents", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    prepare = commands.add_parser("prepare", help="check out the repositories and start a run")
    prepare.add_argument("run", type=Path, help="folder of the run")
    prepare.add_argument("--tools", choices=["rg", "cleats"], required=True)
    prepare.add_argument("--clones", type=Path, required=True, help="folder with clones named owner+name/repo")
    prepare.add_argument("--checkouts", type=Path, required=True, help="folder for the checkouts")
    prompt = commands.add_parser("prompt", help="print the instructions for an agent")
    prompt.add_argument("run", type=Path)
    prompt.add_argument("tasks", nargs="+", help="ids of tasks")
    report = commands.add_parser("report", help="compare runs")
    report.add_argument("runs", type=Path, nargs="+")
    return parser.parse_args()


def _prepare_run(options: argparse.Namespace) -> None:
    options.run.mkdir(parents=True, exist_ok=True)
    for task in load_tasks():
        checkout = options.checkouts / task.id
        if not checkout.exists():
            clone = options.clones / task.repository.replace("/", "+") / "repo"
            _run_git("clone", "--quiet", "--shared", "--no-checkout", str(clone), str(checkout))
            _run_git("-C", str(checkout), "checkout", "--quiet", task.commit)
    scripts = Path(sys.executable).parent
    settings = {
        "tools": options.tools,
        "checkouts": str(options.checkouts.resolve()),
        "rg": str(scripts / "rg"),
        "cleats": str(scripts / "cleats"),
    }
    (options.run / "run.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def _run_git(*arguments: str) -> None:
    subprocess.run([shutil.which("git") or "git", *arguments], check=True)


def _write_prompt(run: Path, task_ids: list[str]) -> str:
    settings = json.loads((run / "run.json").read_text(encoding="utf-8"))
    chosen = [task for task in load_tasks() if task.id in task_ids]
    return PROMPT.format(
        command=f"{sys.executable} -m bench.agents.desk {run}",
        commands=CLEATS_HELP if settings["tools"] == "cleats" else PLAIN_HELP,
        tasks="\n".join(f"- {task.id} ({task.repository}): {task.description}" for task in chosen),
    )


def render_report(runs: list[Path]) -> str:
    """Return a table of runs: tasks, right answers, calls and bytes."""
    rows = [("run", "tasks", "right first", "right in three", "calls", "bytes")]
    answered = [_read_answers(run) for run in runs]
    common = set.intersection(*(set(by_task) for by_task in answered)) if answered else set()
    tasks = {task.id: task for task in load_tasks()}
    for run, by_task in zip(runs, answered, strict=True):
        chosen = {name: calls for name, calls in by_task.items() if name in common}
        rows.append(
            (
                run.name,
                str(len(chosen)),
                str(sum(_is_right(tasks[name], calls, 1) for name, calls in chosen.items())),
                str(sum(_is_right(tasks[name], calls, 3) for name, calls in chosen.items())),
                str(sum(len(calls) - 1 for calls in chosen.values())),
                f"{sum(call['bytes'] for calls in chosen.values() for call in calls[:-1]):,}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _read_answers(run: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the calls of each task that was answered, up to its first answer."""
    by_task: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in (run / "calls.jsonl").read_text(encoding="utf-8").splitlines():
        call = json.loads(line)
        calls = by_task[call["task"]]
        if not calls or calls[-1]["command"] != "answer":
            calls.append(call)
    return {task: calls for task, calls in by_task.items() if calls[-1]["command"] == "answer"}


def _is_right(task: LocateTask, calls: list[dict[str, Any]], first: int) -> bool:
    answers = [path.removeprefix("./") for path in calls[-1]["arguments"][:first]]
    return any(path in task.files for path in answers)


if __name__ == "__main__":
    sys.exit(main())
