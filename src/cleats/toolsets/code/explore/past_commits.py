"""What earlier commits say about a question: whoever described a similar change named the same parts of the code.

Two short commands of git: the subjects of the last commits, then the files of those that have the most words of the
question. Without git, or in a shallow clone, there is just less to learn from.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from cleats.system.git import GitError, ReadOnlyGit
from cleats.toolsets.code.index.tokens import stem_text

MAX_COMMITS: Final = 6000
"""Commits whose subjects are read: some 0.1 s of CPU."""

MAX_SIMILAR_COMMITS: Final = 30
"""Commits whose files are looked up."""

MAX_COMMIT_FILES: Final = 12
"""Source files of a commit that still say where something is; a larger commit is a sweep through the code."""

SIMILARITY_POWER: Final = 0.7
"""Exponent of the share of the question that a subject has: less than 1, since subjects are short."""

LOG_TIMEOUT_SECONDS: Final = 10.0

_COMMIT_PATTERN: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class PastMention(NamedTuple):
    """How well an earlier commit that changed a file fits a question: at most 1."""

    score: float
    subject: str


def find_past_mentions(root: Path, stems: Sequence[str], is_source: Callable[[str], bool]) -> dict[str, PastMention]:
    """Return the best earlier commit of each file that was changed by a commit with words of a question."""
    try:
        git = ReadOnlyGit.from_root(root)
        similar = _find_similar_commits(git, stems)
        files = _list_commit_files(git, list(similar)) if similar else {}
    except GitError:
        return {}
    mentions: dict[str, PastMention] = {}
    for commit, paths in files.items():
        sources = [path for path in paths if is_source(path)]
        if not 0 < len(sources) <= MAX_COMMIT_FILES:
            continue
        similarity, subject = similar[commit]
        score = similarity**SIMILARITY_POWER / math.sqrt(len(sources))
        for path in sources:
            if path not in mentions or score > mentions[path].score:
                mentions[path] = PastMention(score, subject)
    return mentions


def _find_similar_commits(git: ReadOnlyGit, stems: Sequence[str]) -> dict[str, PastMention]:
    """Return the commits whose subjects have the rarest words of a question, best first."""
    wanted = frozenset(stems)
    log = git.run(
        *("log", "--no-merges", f"--max-count={MAX_COMMITS}", "--format=%H%x00%s"), timeout=LOG_TIMEOUT_SECONDS
    )
    # Most subjects have none of the words; a search for their beginnings is much cheaper than their stems.
    parts = "|".join(re.escape(stem[:-1] if len(stem) > 3 and stem.endswith("i") else stem) for stem in stems)
    pattern = re.compile(parts, re.IGNORECASE)
    found: list[tuple[str, str, frozenset[str]]] = []
    rows = log.decode(errors="replace").splitlines()
    for row in rows:
        commit, _, subject = row.partition("\0")
        if pattern.search(subject) and (matched := wanted.intersection(stem_text(subject).split())):
            found.append((commit, subject, matched))
    frequencies = Counter(stem for _, _, matched in found for stem in matched)
    weights = {stem: math.log(1 + (len(rows) - count + 0.5) / (count + 0.5)) for stem, count in frequencies.items()}
    most = sum(weights.values()) or 1.0
    scored = [(sum(weights[stem] for stem in matched) / most, commit, subject) for commit, subject, matched in found]
    scored.sort(key=lambda item: -item[0])  # stable: of two alike, the newer one is first
    return {commit: PastMention(score, subject) for score, commit, subject in scored[:MAX_SIMILAR_COMMITS]}


def _list_commit_files(git: ReadOnlyGit, commits: Sequence[str]) -> dict[str, list[str]]:
    command = ("diff-tree", "--stdin", "-r", "--root", "--relative", "--no-renames", "--name-only", "-z")
    output = git.run(*command, stdin="".join(f"{commit}\n" for commit in commits).encode())
    files: dict[str, list[str]] = {}
    paths: list[str] = []
    for entry in output.decode(errors="surrogateescape").replace("\n", "\0").split("\0"):
        if _COMMIT_PATTERN.fullmatch(entry):
            paths = files.setdefault(entry, [])
        elif entry:
            paths.append(entry)
    return files
