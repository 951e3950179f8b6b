"""Tasks from the fix commits of real repositories: a description, and the places that were changed."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bench import fix_commits

TASKS_FILE: Final = Path(__file__).parent / "tasks.json"

SOURCE_SUFFIXES: Final = (
    *(".py", ".rs", ".go", ".java", ".kt", ".php", ".rb", ".cs", ".c", ".h", ".cc", ".cpp", ".hpp"),
    *(".ts", ".tsx", ".js", ".jsx", ".mjs", ".vue", ".svelte"),
)
IGNORED_SUFFIXES: Final = (
    *(
        ".md",
        ".rst",
        ".txt",
        ".adoc",
        ".org",
        ".po",
        ".pot",
        ".json",
        ".yml",
        ".yaml",
        ".toml",
        ".lock",
        ".sum",
        ".mod",
    ),
    *(".snap", ".png", ".svg", "/changelog", "/changes", "/news"),
)
"""Files that a fix may change beside its sources; a fix that changes any others, such as templates, is left out."""

TEST_PATTERN: Final = re.compile(
    r"(?i)(?:^|/)(?:tests?|specs?|__tests__|testdata|benchmarks?|docs?|examples?)/|test|[._]spec\."
)
IDENTIFIER_PATTERN: Final = re.compile(r"`|\w+\(\)|[a-z]+[A-Z]\w*|\w+_\w+|\w+\.\w+|::|->|\b[A-Z]{4,}\b|/")
FIX_PATTERN: Final = re.compile(r"^(?:fix(?:e[sd])?\b|[\w.-]+(?:\([^)]*\))?!?:\s*fix|fix\([^)]*\):)", re.IGNORECASE)
CHORE_PATTERN: Final = re.compile(
    r"(?i)\b(?:typos?|spelling|lint\w*|tests?|testing|specs?|flak\w+|ci|build|builds|compil\w+|clippy|warnings?|docs?"
    r"|documentation|readme|changelog|comments?|docstrings?|javadoc|translations?|i18n|deps|dependenc\w+|bump|upgrade"
    r"|version|release|revert|merge|refactor\w*|rename|formatting|review|sonar|coverity|regression|backport|workflow"
    r"|docker\w*|styles?|nits?|cleanup|follow|cve|ghsa|storybook|migrations?|deprecat\w+|copyright|license|imports?|types?"
    r"|typings?|eslint|rubocop|phpstan|unicorn|analyzer|[A-Z]{2,}\d{3,}|v\d+\.\d+\S*)\b"
)
"""Subjects that do not say what goes wrong for a user of the code, names of lint rules among them."""

PLAIN_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """a an and are as at be bug but by can correct correctly does error errors fix fixed fixes for from handle
        handling if in incorrect into is issue issues it its make minor more new no not of on one only or problem
        problems properly should small so some that the them this to use used using various was when where which with
        without wrong""",
    )
)
"""Words that say nothing about the place of a defect."""

MIN_TELLING_WORDS, MAX_SUBJECT_WORDS = 5, 25
MAX_CHANGED_FILES, MAX_CHANGED_LINES = 2, 60
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
    lines: dict[str, list[tuple[int, int]]]
    """The first and last of each changed range of lines in each file, as they are numbered before the fix."""
    has_identifiers: bool


def load_tasks(tasks_file: Path = TASKS_FILE) -> list[LocateTask]:
    """Read tasks; by default those that are kept with the benchmark."""
    return [LocateTask(**fields) for fields in json.loads(tasks_file.read_text(encoding="utf-8"))]


def save_tasks(tasks: Sequence[LocateTask], tasks_file: Path) -> None:
    """Write tasks, one on each line."""
    rows = [json.dumps(asdict(task), ensure_ascii=False) for task in tasks]
    tasks_file.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


def mine_tasks(repository: str, clone: Path, count: int, revision: str = "HEAD") -> list[LocateTask]:
    """Return the newest fix commits of a repository as tasks, half of them without identifiers.

    A fix whose subject another commit has too is left out: the history would tell where it is.
    """
    wanted = {True: count - count // 2, False: count // 2}
    tasks: list[LocateTask] = []
    commits = list(fix_commits.list_commits(clone, revision))
    repeated = Counter(_clean_subject(subject).lower() for _, subject in commits)
    for commit, subject in commits:
        if not FIX_PATTERN.search(subject):
            continue
        description = _clean_subject(subject)
        has_identifiers = IDENTIFIER_PATTERN.search(description) is not None
        if not wanted[has_identifiers] or not _is_telling(description) or repeated[description.lower()] > 1:
            continue
        lines = _read_changed_lines(clone, commit)
        changed = sum(last - first + 1 for ranges in lines.values() for first, last in ranges)
        if not 1 <= len(lines) <= MAX_CHANGED_FILES or not 0 < changed <= MAX_CHANGED_LINES:
            continue
        wanted[has_identifiers] -= 1
        name = f"{repository.rsplit('/', 1)[-1]}-{commit[:8]}"
        parent = fix_commits.run_git(clone, "rev-parse", f"{commit}^").strip()
        tasks.append(LocateTask(name, repository, parent, description, sorted(lines), lines, has_identifiers))
        if not any(wanted.values()):
            break
    return tasks


def _clean_subject(subject: str) -> str:
    """Return a subject without references to issues and without the prefix that names the place."""
    text = re.sub(r"\s*\(?\w*#\d+\)?|\bGH-\d+|\bRefs?\s+#?\d+|^\[[^]]*\]\s*", "", subject)
    text = re.sub(r"^(?:Fix(?:e[sd])?|[\w.-]+(?:\([^)]*\))?!?):\s*|^Fixed[\s,]*--\s*", "", text)
    return text.strip(" .") + "."


def _is_telling(description: str) -> bool:
    """Return whether a description says what is wrong, in words of its own."""
    words = re.findall(r"[^\W\d_]{2,}", description.lower())
    telling = set(words) - PLAIN_WORDS
    is_chore = CHORE_PATTERN.search(description) is not None
    return not is_chore and len(telling) >= MIN_TELLING_WORDS and len(description.split()) <= MAX_SUBJECT_WORDS


def _read_changed_lines(clone: Path, commit: str) -> dict[str, list[tuple[int, int]]]:
    """Return the changed line ranges of the source files of a commit; nothing where it changes other parts too."""
    lines: dict[str, list[tuple[int, int]]] = {}
    path = ""
    for row in fix_commits.run_git(clone, "show", "--format=", "--unified=0", "--no-renames", commit).splitlines():
        if row.startswith("diff --git "):
            path = row.rpartition(" b/")[2]
            if not path.endswith(SOURCE_SUFFIXES) and not _is_beside_the_point(path):
                return {}
        elif row.startswith("--- /dev/null"):
            path = ""
        elif row.startswith("@@") and path.endswith(SOURCE_SUFFIXES) and not TEST_PATTERN.search(path):
            start, size = fix_commits.parse_hunk_range(row.split(" ")[1])
            lines.setdefault(path, []).append((start, start + max(1, size) - 1))
    return lines


def _is_beside_the_point(path: str) -> bool:
    return TEST_PATTERN.search(path) is not None or f"/{path}".lower().endswith(IGNORED_SUFFIXES)
