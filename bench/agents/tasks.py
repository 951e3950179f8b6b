"""Tasks from the fix commits of real repositories: a description, and the places that were changed."""

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

TASKS_FILE: Final = Path(__file__).parent / "tasks.json"

SOURCE_SUFFIXES: Final = (".py", ".rs", ".go", ".ts", ".java", ".c", ".h", ".cs", ".kt", ".php", ".rb", ".js", ".cpp")
TEST_PATTERN: Final = re.compile(
    r"(?i)(?:^|/)(?:tests?|specs?|__tests__|testdata|benchmarks?|docs?|examples?)/|test|spec\."
)
IDENTIFIER_PATTERN: Final = re.compile(r"`|\w+\(\)|[a-z]+[A-Z]\w*|\w+_\w+|\w+\.\w+|::|->|\b[A-Z]{4,}\b|/")
FIX_PATTERN: Final = re.compile(
    r"^(?:fix(?:e[sd])?\b|Fix(?:e[sd])?\b|\w+(?:\([^)]*\))?: fix|fix\([^)]*\):)", re.IGNORECASE
)

MIN_SUBJECT_WORDS, MAX_SUBJECT_WORDS = 6, 25
MAX_CHANGED_FILES, MAX_CHANGED_LINES = 3, 60
"""A fix in one place: what is wrong can be described, and found."""


@dataclass(frozen=True)
class LocateTask:
    """One defect to locate."""

    id: str
    repository: str
    commit: str
    """The commit before the fix, which an agent looks at."""
    description: str
    files: list[str]
    lines: dict[str, list[int]]
    """The changed lines of each file, as they are numbered before the fix."""
    has_identifiers: bool


def load_tasks() -> list[LocateTask]:
    """Read the tasks that are kept with the benchmark."""
    return [LocateTask(**fields) for fields in json.loads(TASKS_FILE.read_text(encoding="utf-8"))]


def save_tasks(tasks: Sequence[LocateTask]) -> None:
    """Write tasks to the file that is kept with the benchmark."""
    text = json.dumps([asdict(task) for task in tasks], indent=1, ensure_ascii=False)
    TASKS_FILE.write_text(text + "\n", encoding="utf-8")


def mine_tasks(repository: str, checkout: Path, count: int, revision: str = "HEAD") -> list[LocateTask]:
    """Return the newest fix commits of a repository as tasks, half of them without identifiers."""
    wanted = {True: count - count // 2, False: count // 2}
    tasks: list[LocateTask] = []
    for commit, subject in _list_fixes(checkout, revision):
        description = _clean_subject(subject)
        has_identifiers = IDENTIFIER_PATTERN.search(description) is not None
        words = len(description.split())
        if not MIN_SUBJECT_WORDS <= words <= MAX_SUBJECT_WORDS or not wanted[has_identifiers]:
            continue
        lines = _read_changed_lines(checkout, commit)
        changed = sum(map(len, lines.values()))
        if not lines or len(lines) > MAX_CHANGED_FILES or not 0 < changed <= MAX_CHANGED_LINES:
            continue
        wanted[has_identifiers] -= 1
        name = f"{repository.rsplit('/', 1)[-1]}-{commit[:8]}"
        parent = _run_git(checkout, "rev-parse", f"{commit}^").strip()
        tasks.append(LocateTask(name, repository, parent, description, sorted(lines), lines, has_identifiers))
        if not any(wanted.values()):
            break
    return tasks


def _list_fixes(checkout: Path, revision: str) -> Iterator[tuple[str, str]]:
    for row in _run_git(checkout, "log", "--no-merges", "--format=%H%x09%s", "-n", "4000", revision).splitlines():
        commit, _, subject = row.partition("\t")
        if FIX_PATTERN.search(subject):
            yield commit, subject


def _clean_subject(subject: str) -> str:
    """Return a subject without references to issues and without the prefix that names the place."""
    text = re.sub(r"\s*\(?#\d+\)?|\bGH-\d+|\bRefs?\s+#?\d+", "", subject)
    text = re.sub(r"^\w+(?:\([^)]*\))?:\s*|^Fixed[\s,]*--\s*", "", text)
    return text.strip(".") + "."


def _read_changed_lines(checkout: Path, commit: str) -> dict[str, list[int]]:
    """Return the changed lines of the source files of a commit; tests are left out."""
    lines: dict[str, list[int]] = {}
    path = ""
    for row in _run_git(checkout, "show", "--format=", "--unified=0", "--no-renames", commit).splitlines():
        if row.startswith("--- "):
            path = row[6:] if row.startswith("--- a/") else ""
        elif row.startswith("@@") and path.endswith(SOURCE_SUFFIXES) and not TEST_PATTERN.search(path):
            start, _, length = row.split(" ")[1].lstrip("-").partition(",")
            size = int(length or 1)
            lines.setdefault(path, []).extend(range(int(start), int(start) + max(1, size)))
    return lines


def _run_git(checkout: Path, *arguments: str) -> str:
    command = ["git", "-C", str(checkout), *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace")
