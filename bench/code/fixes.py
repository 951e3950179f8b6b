"""Fix commits as questions: given the subject of a fix, find what it changed.

`fixes.json` has the repository, the commit, the subject, the paths and the lines of each fix; the
repositories are clones that a caller provides. The source files of one commit per repository are
indexed, of the parent of its oldest fix, and lines are those of that commit. The first half of the
repositories is for choosing weights, the other half is only reported.
"""

import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bench import fix_commits
from bench.code.corpora import CORPORA_FOLDER, commit_folder

FIXES_FILE: Final = Path(__file__).parent / "fixes.json"

CHOOSING_REPOSITORIES: Final = (
    *("Textualize/textual", "caddyserver/caddy", "helix-editor/helix", "excalidraw/excalidraw"),
    *("jhy/jsoup", "jekyll/jekyll", "tmux/tmux"),
)
REPORTED_REPOSITORIES: Final = (
    *("networkx/networkx", "prometheus/alertmanager", "nushell/nushell", "actualbudget/actual"),
    *("openhab/openhab-core", "jellyfin/jellyfin", "OpenSC/OpenSC"),
)
FIXES_PER_REPOSITORY: Final = 40


@dataclass(frozen=True)
class FixCase:
    """One fix: its subject is the question, the changed files are the answers."""

    commit: str
    question: str
    lines: dict[str, list[int]]
    """The changed lines of each file at the indexed commit; none if they are not in it yet."""


@dataclass(frozen=True)
class FixSet:
    """The fixes of one repository, and the commit that is indexed for all of them."""

    repository: str
    snapshot: str
    cases: list[FixCase]

    @property
    def is_reported(self) -> bool:
        return self.repository in REPORTED_REPOSITORIES

    def prepare(self, clones: Path) -> Path:
        """Write the source files of the indexed commit, tests included, and return their folder."""
        folder = CORPORA_FOLDER / f"fixes-{self.repository.replace('/', '+')}-{self.snapshot[:8]}"
        ready_marker = folder.with_name(f"{folder.name}.ready")
        if not ready_marker.exists():
            shutil.rmtree(folder, ignore_errors=True)
            clone = fix_commits.find_clone(clones, self.repository)
            listed = fix_commits.run_git(clone, "ls-tree", "-r", "--name-only", self.snapshot).splitlines()
            sources = [path for path in listed if path.endswith(fix_commits.SOURCE_SUFFIXES)]
            command = ["git", "-C", str(clone), "archive", "--format=tar", self.snapshot, *sources]
            archive = subprocess.run(command, check=True, capture_output=True)
            with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
                tar.extractall(folder, filter="data")
            commit_folder(folder)
            ready_marker.touch()
        return folder


def load_fix_sets() -> list[FixSet]:
    """Read the fixes that are kept with the benchmark."""
    return [
        FixSet(fields["repository"], fields["snapshot"], [FixCase(**case) for case in fields["cases"]])
        for fields in json.loads(FIXES_FILE.read_text(encoding="utf-8"))
    ]


def mine_fix_sets(clones: Path) -> None:
    """Mine the newest fixes of all repositories and write them to the file of the benchmark."""
    fix_sets = [
        mine_fix_set(repository, fix_commits.find_clone(clones, repository))
        for repository in (*CHOOSING_REPOSITORIES, *REPORTED_REPOSITORIES)
    ]
    text = json.dumps([asdict(fix_set) for fix_set in fix_sets], separators=(",", ":"), ensure_ascii=False)
    FIXES_FILE.write_text(text.replace('{"commit"', '\n{"commit"') + "\n", encoding="utf-8")


def mine_fix_set(repository: str, clone: Path) -> FixSet:
    """Return the newest fixes of a repository whose files exist in the parent of the oldest."""
    found: list[tuple[str, str, dict[str, list[int]]]] = []
    for commit, subject in fix_commits.list_fixes(clone):
        if lines := fix_commits.read_changed_lines(clone, commit):
            found.append((commit, subject, lines))
        if len(found) == FIXES_PER_REPOSITORY:
            break
    snapshot = fix_commits.run_git(clone, "rev-parse", f"{found[-1][0]}^").strip()
    known = set(fix_commits.run_git(clone, "ls-tree", "-r", "--name-only", snapshot).splitlines())
    cases = []
    for commit, subject, lines in found:
        mapped = {
            path: list(_map_lines(clone, snapshot, f"{commit}^", path, numbers))
            for path, numbers in lines.items()
            if path in known
        }
        if mapped:
            cases.append(FixCase(commit, fix_commits.remove_references(subject), mapped))
    return FixSet(repository, snapshot, cases)


def _map_lines(clone: Path, snapshot: str, revision: str, path: str, numbers: Sequence[int]) -> Iterator[int]:
    """Yield the lines of a revision as they are numbered in a snapshot; new lines are left out."""
    rows = fix_commits.run_git(clone, "diff", "--unified=0", snapshot, revision, "--", path).splitlines()
    hunks = [tuple(map(fix_commits.parse_hunk_range, row.split(" ")[1:3])) for row in rows if row.startswith("@@")]
    for number in numbers:
        before = [hunk for hunk in hunks if hunk[1][0] + (not hunk[1][1]) <= number]
        is_new = bool(before) and number < sum(before[-1][1])
        if not is_new:
            yield number + sum(old_size - size for (_, old_size), (_, size) in before)
