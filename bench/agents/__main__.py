"""The agent trial: `python -m bench.agents mine | prepare | prompt | report | simulate`.

`mine` makes tasks from the fix commits of clones, `prepare` checks the repositories out and builds
their indexes, `prompt` prints the instructions for an agent, and `report` compares the runs.
`simulate` needs no agent: it asks `find_code` once for every task of a run.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.agents.places import list_changed_declarations, split_place
from bench.agents.simulate import ask_tasks, render_first_answers
from bench.agents.tasks import TASKS_FILE, LocateTask, load_tasks, mine_tasks, save_tasks
from cleats.cli.settings_loader import load_settings
from cleats.toolsets.code.explore.tools import build_toolset
from cleats.toolsets.code.shared_engine import CodeEngine

PROMPT = """You locate defects in source code. For each task below, find the source file (not a test) and the function,
method, class or constant in it that has to change to fix the defect. Work on one task after the other. Use only this
command, once for each step, with one COMMAND in each call of your shell:

  cd {folder} && {command} TASK COMMAND [ARGUMENTS]

Commands:
{commands}
  answer FILE:NAME [FILE:NAME...]   end the task: at most three places, the likeliest first; src/app.py:Session.close

What counts is a right first file, then a right name in it, then few calls and few bytes of output: answer as soon as
you are fairly sure, and read as little as you need. Do not use any other tool, and do not look at the repositories in
any other way.

Tasks:
{tasks}
"""
PLAIN_HELP = """  rg ARGUMENTS             ripgrep in the repository, with any options, such as: rg -n 'some text' src
  lines FILE FIRST LAST    lines of a file, with their numbers"""
CLEATS_HELP = """  find_code '{{"query": "..."}}'       {find_code}
  grep_code '{{"pattern": "..."}}'     {grep_code} "regex", "path", "files_only"
  read_symbol '{{"name": "..."}}'      {read_symbol}
  find_references '{{"name": "..."}}'  {find_references}
  outline '{{"path": "..."}}'          {outline}
  read_lines '{{"path": "...", "start": 1, "end": 40}}'
Advice of the server: {advice}"""


def main() -> int:
    """Return 0 if the command could be run."""
    options = _parse_options()
    if options.command == "mine":
        _mine_tasks(options)
    elif options.command == "prepare":
        _prepare_run(options)
    elif options.command == "prompt":
        print(_write_prompt(options.run, options.part))
    elif options.command == "simulate":
        _simulate_run(options)
    else:
        print(render_report(options.runs))
    return 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.agents", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    mine = commands.add_parser("mine", help="make tasks from fix commits")
    mine.add_argument("tasks", type=Path, help="file to write")
    mine.add_argument("repositories", nargs="+", help="owner/name")
    mine.add_argument("--clones", type=Path, required=True, help="folder with clones named owner+name/repo")
    mine.add_argument("--count", type=int, default=6, help="tasks of each repository")
    prepare = commands.add_parser("prepare", help="check out the repositories and start a run")
    prepare.add_argument("run", type=Path, help="folder of the run")
    prepare.add_argument("--tools", choices=["rg", "cleats"], required=True)
    prepare.add_argument("--tasks", type=Path, default=TASKS_FILE, help="file with tasks")
    prepare.add_argument("--clones", type=Path, required=True, help="folder with clones named owner+name/repo")
    prepare.add_argument("--checkouts", type=Path, required=True, help="folder for the checkouts")
    prepare.add_argument("--cache", type=Path, help="cache folder of Cleats [default: the folder of the run]")
    prepare.add_argument("--no-index", action="store_true", help="let Cleats answer from live scans")
    prompt = commands.add_parser("prompt", help="print the instructions for an agent")
    prompt.add_argument("run", type=Path)
    prompt.add_argument("--part", default="1/1", help="only this part of the tasks, such as 2/4")
    simulate = commands.add_parser("simulate", help="rate the first answer of find_code for every task")
    simulate.add_argument("run", type=Path, help="folder of a run that was prepared")
    simulate.add_argument("--answers", action="store_true", help="print the answers too")
    simulate.add_argument("--part", default="1/1", help="only this part of the tasks, such as 2/4")
    report = commands.add_parser("report", help="compare runs")
    report.add_argument("runs", type=Path, nargs="+")
    return parser.parse_args()


def _mine_tasks(options: argparse.Namespace) -> None:
    tasks: list[LocateTask] = []
    for repository in options.repositories:
        found = mine_tasks(repository, _find_clone(options.clones, repository), options.count)
        print(f"{repository}: {len(found)} tasks")
        tasks += found
    save_tasks(tasks, options.tasks)


def _prepare_run(options: argparse.Namespace) -> None:
    options.run.mkdir(parents=True, exist_ok=True)
    scripts = Path(sys.executable).parent
    cache = (options.cache or options.run / "cache").resolve()
    settings = {
        "tools": options.tools,
        "tasks": str(options.tasks.resolve()),
        "checkouts": str(options.checkouts.resolve()),
        "cache": str(cache),
        "has_index": options.tools == "cleats" and not options.no_index,
        "rg": str(scripts / "rg"),
        "cleats": str(scripts / "cleats"),
    }
    (options.run / "run.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    for task in load_tasks(options.tasks):
        checkout = options.checkouts / task.id
        if not checkout.exists():
            clone = _find_clone(options.clones, task.repository)
            _run("git", "clone", "--quiet", "--shared", "--no-checkout", str(clone), str(checkout))
            _check_out(checkout, task.commit)
        if settings["has_index"]:
            _build_index(scripts / "cleats", checkout, cache, cache / "exported" / task.repository.replace("/", "+"))


def _check_out(checkout: Path, commit: str) -> None:
    """Write the files of a commit; a clone may lack some large ones, which no task is about."""
    _run("git", "-C", str(checkout), "update-ref", "--no-deref", "HEAD", commit)
    _run("git", "-C", str(checkout), "read-tree", "HEAD")
    subprocess.run(
        ["git", "-C", str(checkout), "checkout-index", "--all", "--quiet"], check=False, stderr=subprocess.DEVNULL
    )


def _build_index(cleats: Path, checkout: Path, cache: Path, exported: Path) -> None:
    """Build the index of a checkout, from that of another checkout of the repository where there is one."""
    beginning = ["--from", str(exported)] if exported.exists() else []
    _run("nice", str(cleats), "index", "--quiet", *beginning, str(checkout), cache=cache)
    if not beginning:
        exported.parent.mkdir(parents=True, exist_ok=True)
        _run(str(cleats), "index", "export", str(exported), str(checkout), cache=cache)


def _find_clone(clones: Path, repository: str) -> Path:
    return clones / repository.replace("/", "+") / "repo"


def _run(program: str, *arguments: str, cache: Path | None = None) -> None:
    environment = os.environ | ({"CLEATS_CACHE_DIR": str(cache)} if cache else {})
    subprocess.run([shutil.which(program) or program, *arguments], check=True, env=environment)


def _write_prompt(run: Path, part: str) -> str:
    settings = _read_settings(run)
    chosen = _choose_part(load_tasks(Path(settings["tasks"])), part)
    return PROMPT.format(
        folder=Path.cwd(),
        command=f"{sys.executable} -m bench.agents.desk {run.resolve()}",
        commands=_describe_tools() if settings["tools"] == "cleats" else PLAIN_HELP,
        tasks="\n".join(f"- {task.id} ({task.repository}): {task.description}" for task in chosen),
    )


def _choose_part(tasks: list[LocateTask], part: str) -> list[LocateTask]:
    number, _, parts = part.partition("/")
    return tasks[int(number) - 1 :: int(parts)]


def _describe_tools() -> str:
    """Describe the tools the way the server does: an agent that is connected reads the same."""
    toolset = build_toolset(CodeEngine(load_settings(os.environ)))
    return CLEATS_HELP.format(advice=toolset.advice, **{tool.name: tool.description for tool in toolset.tools})


def render_report(runs: list[Path]) -> str:
    """Return a table of runs: tasks, right files, right declarations in them, calls and bytes."""
    rows = [("run", "tasks", "right file first", "in three", "right name", "calls", "bytes")]
    answered = [_read_answers(run) for run in runs]
    common = set.intersection(*(set(by_task) for by_task in answered)) if answered else set()
    tasks = {task.id: task for run in runs for task in load_tasks(Path(_read_settings(run)["tasks"]))}
    for run, by_task in zip(runs, answered, strict=True):
        chosen = {name: calls for name, calls in by_task.items() if name in common}
        checkouts = Path(_read_settings(run)["checkouts"])
        named = [_names_declaration(tasks[name], calls, checkouts / name) for name, calls in chosen.items()]
        rows.append(
            (
                run.name,
                str(len(chosen)),
                str(sum(_is_right(tasks[name], calls, 1) for name, calls in chosen.items())),
                str(sum(_is_right(tasks[name], calls, 3) for name, calls in chosen.items())),
                f"{named.count(True)} of {len(named) - named.count(None)}",
                str(sum(len(calls) - 1 for calls in chosen.values())),
                f"{sum(call['bytes'] for calls in chosen.values() for call in calls[:-1]):,}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _simulate_run(options: argparse.Namespace) -> None:
    settings = _read_settings(options.run)
    tasks = _choose_part(load_tasks(Path(settings["tasks"])), options.part)
    answers = ask_tasks(tasks, Path(settings["checkouts"]), Path(settings["cache"]))
    for answer in answers if options.answers else ():
        print(f"## {answer.task.id} rank {answer.rank}: {answer.task.description}\n{answer.text}\n")
    print(render_first_answers(answers))


def _read_settings(run: Path) -> dict[str, Any]:
    settings: dict[str, Any] = json.loads((run / "run.json").read_text(encoding="utf-8"))
    return settings


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
    return any(split_place(place)[0] in task.files for place in calls[-1]["arguments"][:first])


def _names_declaration(task: LocateTask, calls: list[dict[str, Any]], checkout: Path) -> bool | None:
    """Return whether an answer names a declaration that was changed; None if the fix changed none with a name."""
    changed = list_changed_declarations(task, checkout)
    places = [split_place(place) for place in calls[-1]["arguments"][:3]]
    return any(name in changed.get(path, ()) for path, name in places) if changed else None


if __name__ == "__main__":
    sys.exit(main())
