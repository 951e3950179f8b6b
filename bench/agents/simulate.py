"""How good the first answer of `find_code` is: the rank of the right file, and the bytes of the answer.

Every task is asked once, with its description as the query, as an agent does that follows the server's advice.
"""

import asyncio
import re
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.agents.places import find_declaration_name, list_changed_declarations
from bench.agents.tasks import LocateTask
from cleats.app import load_toolsets, open_dispatcher
from cleats.contract.outcome import Done
from cleats.runtime.call import ToolCall
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings
from cleats.toolsets.code.explore.find_code import CLEAR_LEAD_TEXT

NEAR_LINES: Final = 2
"""Lines between a line that is shown and a changed one that a reader still connects."""


class FirstAnswer(NamedTuple):
    """What the first answer to a task shows."""

    task: LocateTask
    rank: int | None
    """The place of the first right file among the files that are named, from 1; None if it is not named."""
    has_declaration: bool | None
    """Whether a changed declaration is among those that are shown; None if the fix changed none with a name."""
    shows_change: bool
    """Whether a changed line, or one beside it, is shown."""
    size: int
    has_clear_lead: bool
    text: str


def ask_tasks(tasks: Sequence[LocateTask], checkouts: Path, cache: Path) -> list[FirstAnswer]:
    """Ask `find_code` about every task; an index is used where the cache has one."""
    return asyncio.run(_ask_all(tasks, checkouts, cache))


async def _ask_all(tasks: Sequence[LocateTask], checkouts: Path, cache: Path) -> list[FirstAnswer]:
    settings = Settings(project_dir=checkouts, cache_dir=cache, data_dir=cache, log_level="error")
    status = ServerStatus()
    answers = []
    async with open_dispatcher(settings, load_toolsets(settings, ["explore"], status), status) as dispatcher:
        for task in tasks:
            checkout = (checkouts / task.id).resolve()
            call = ToolCall(tool="find_code", arguments={"query": task.description, "repo": str(checkout)})
            outcome = await dispatcher.dispatch(call)
            assert isinstance(outcome, Done), outcome
            answers.append(rate_answer(task, outcome.result, checkout))
    return answers


def rate_answer(task: LocateTask, text: str, checkout: Path) -> FirstAnswer:
    """Find the right files and declarations of a task in an answer."""
    named = list_named_files(text)
    rank = min((named.index(path) + 1 for path in task.files if path in named), default=None)
    changed = list_changed_declarations(task, checkout)
    shown = [(path, find_declaration_name(checkout, path, line)) for path, line in list_shown_lines(text)]
    has_declaration = any(name in changed.get(path, ()) for path, name in shown) if changed else None
    shows_change = any(
        first - NEAR_LINES <= line <= last + NEAR_LINES
        for path, line in list_shown_lines(text)
        for first, last in task.lines.get(path, ())
    )
    return FirstAnswer(task, rank, has_declaration, shows_change, len(text.encode()), CLEAR_LEAD_TEXT in text, text)


def list_shown_lines(text: str) -> list[tuple[str, int]]:
    """Return the files and line numbers that an answer shows."""
    shown: list[tuple[str, int]] = []
    path = ""
    for line in text.splitlines():
        place = re.match(r"(\S+?):(\d+) ", line)
        inner = re.match(r" +(\d+)[-: ]", line)
        if line.startswith("  also: "):
            shown += [(path, int(number)) for number in re.findall(r"(?:: |, )(\d+) ", line)]
        elif place:
            shown.append((place[1], int(place[2])))
        elif inner:
            shown.append((path, int(inner[1])))
        elif not line.startswith(" "):
            path = line.split(" ", 1)[0]
    return shown


def list_named_files(text: str) -> list[str]:
    """Return the files that an answer names, in their order."""
    paths: list[str] = []
    for line in text.splitlines():
        if line.startswith("Also: "):
            for group in line.removeprefix("Also: ").split():
                folder, brace, names = group.partition("{")
                paths += [folder + name for name in names.rstrip("}").split(",")] if brace else [group]
        elif not line.startswith(" "):
            paths.append(re.split(r":\d|\s", line, maxsplit=1)[0])
    return list(dict.fromkeys(paths))


def render_first_answers(answers: Sequence[FirstAnswer]) -> str:
    """Return a table: right files by rank and sizes of answers, by repository and with and without identifiers."""
    groups: dict[str, list[FirstAnswer]] = defaultdict(list)
    for answer in answers:
        groups[answer.task.repository].append(answer)
    groups["with identifiers"] = [answer for answer in answers if answer.task.has_identifiers]
    groups["without identifiers"] = [answer for answer in answers if not answer.task.has_identifiers]
    groups["clear lead"] = [answer for answer in answers if answer.has_clear_lead]
    groups["all"] = list(answers)
    lines = [
        f"{'':28}{'tasks':>6}{'first':>6}{'three':>6}{'five':>6}{'named':>6}{'declared':>10}{'change':>7}{'bytes':>7}"
    ]
    for name, group in groups.items():
        ranks = [answer.rank or 1000 for answer in group]
        counts = [sum(rank <= most for rank in ranks) for most in (1, 3, 5, 999)]
        size = statistics.mean(answer.size for answer in group) if group else 0
        known = [answer.has_declaration for answer in group if answer.has_declaration is not None]
        declared = f"{sum(known)}/{len(known)}"
        changes = sum(answer.shows_change for answer in group)
        columns = "".join(f"{count:6}" for count in counts)
        lines.append(f"{name:28}{len(group):6}{columns}{declared:>10}{changes:7}{size:7.0f}")
    return "\n".join(lines)
