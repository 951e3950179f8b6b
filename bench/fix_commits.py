"""Fix commits of real repositories: what was wrong, and the places that were changed."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SOURCE_SUFFIXES: Final = (
    *(".py", ".rs", ".go", ".java", ".c", ".h", ".cs", ".kt", ".php", ".rb", ".cpp", ".cc", ".hpp"),
    *(".ts", ".tsx", ".js", ".jsx", ".mjs"),
)
TEST_PATTERN: Final = re.compile(
    r"(?i)(?:^|/)(?:tests?|specs?|__tests__|testdata|benchmarks?|docs?|examples?)/|test|spec\."
)
FIX_PATTERN: Final = re.compile(
    r"^(?:fix(?:e[sd])?\b|\w+(?:\([^)]*\))?: fix|fix\([^)]*\):|\[[^]]*\] fix)", re.IGNORECASE
)
VAGUE_PATTERN: Final = re.compile(
    r"\b(?:typos?|spelling|lint\w*|checkstyle|warnings?|tests?|CI|docs?|docstrings?|comments?|review)\b", re.IGNORECASE
)
"""Fixes of texts, of tests and of many places; their subjects do not say where."""

MIN_SUBJECT_WORDS, MAX_SUBJECT_WORDS = 6, 25
MAX_CHANGED_FILES, MAX_CHANGED_LINES = 3, 60
"""A fix in one place: what is wrong can be described, and found."""

MAX_LISTED_COMMITS: Final = 4000


def find_clone(clones: Path, repository: str) -> Path:
    """Return the folder of a clone: `owner+name/repo` in the folder of all clones."""
    return clones / repository.replace("/", "+") / "repo"


def list_commits(clone: Path, revision: str = "HEAD") -> Iterator[tuple[str, str]]:
    """Yield the newest commits that are not merges, with their subjects."""
    log = ["log", "--no-merges", "--format=%H%x09%s", "-n", str(MAX_LISTED_COMMITS), revision]
    for row in run_git(clone, *log).splitlines():
        commit, _, subject = row.partition("\t")
        yield commit, subject


def list_fixes(clone: Path, revision: str = "HEAD") -> Iterator[tuple[str, str]]:
    """Yield the commit and the subject of fixes whose subject is a sentence, newest first."""
    for commit, subject in list_commits(clone, revision):
        is_sentence = MIN_SUBJECT_WORDS <= len(subject.split()) <= MAX_SUBJECT_WORDS
        if is_sentence and FIX_PATTERN.search(subject) and not VAGUE_PATTERN.search(subject):
            yield commit, subject


def remove_references(subject: str) -> str:
    """Return a subject without references to issues."""
    return re.sub(r"\s*\(?#\d+\)?|\bGH-\d+|\bRefs?\s+#?\d+", "", subject).strip()


def is_source_path(path: str) -> bool:
    """Return whether a path is of source code and not of a test, an example or a document."""
    return path.endswith(SOURCE_SUFFIXES) and TEST_PATTERN.search(path) is None


def read_changed_lines(clone: Path, commit: str) -> dict[str, list[int]]:
    """Return the changed lines of each source file, as they are numbered before the commit.

    It is empty for a commit that changes too much to be one fix.
    """
    lines: dict[str, list[int]] = {}
    path = ""
    for row in run_git(clone, "show", "--format=", "--unified=0", "--no-renames", commit).splitlines():
        if row.startswith("--- "):
            path = row[6:] if row.startswith("--- a/") else ""
        elif row.startswith("@@") and is_source_path(path):
            start, size = parse_hunk_range(row.split(" ")[1])
            lines.setdefault(path, []).extend(range(start, start + max(1, size)))
    changed = sum(map(len, lines.values()))
    return lines if len(lines) <= MAX_CHANGED_FILES and changed <= MAX_CHANGED_LINES else {}


def parse_hunk_range(text: str) -> tuple[int, int]:
    """Return the first line and the number of lines of `-12,3` or `+12`."""
    start, _, size = text[1:].partition(",")
    return int(start), int(size or 1)


def run_git(clone: Path, *arguments: str) -> str:
    """Run git in a repository and return its output."""
    command = ["git", "-C", str(clone), *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace")
