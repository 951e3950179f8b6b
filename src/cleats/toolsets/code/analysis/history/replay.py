"""The author of each line of a repository, the last author of each file, and its churn.

Everything is computed as of a commit and then carried over to the files in the work tree: lines
that are not committed yet have no author.
"""

from array import array
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from cleats.system.git import GitError, ReadOnlyGit
from cleats.toolsets.code.analysis.history import log_reader
from cleats.toolsets.code.analysis.history.git_log import FilePatch
from cleats.toolsets.code.analysis.history.line_authors import BlameLedger, FileBlame, apply_hunks

MAX_COMMITS = 50_000
"""Commits along first parents. More take minutes, and their authors have long moved on."""


class FileHistory(NamedTuple):
    """Git facts about one file."""

    last_author: str
    """`Name <mail>`; empty if unknown."""
    last_modified: int | None
    """Time of the last commit that changed it, in seconds since 1970."""
    last_commit: str | None
    churn: int | None
    """Added and removed lines over the last ten commits that changed it."""


class History(Struct):
    """The history of a work tree. Paths are relative to its root, with `/`."""

    authors: list[str]
    """`Name <mail>`, in the order of their first commits; the first one is empty."""
    warnings: list[str]
    _ledger: BlameLedger
    _work_tree_files: dict[bytes, FileBlame] = {}
    is_unchanged: bool = False
    """True if no commit was added, so that saving it again would give the same bytes."""

    @classmethod
    def from_commit(
        cls,
        root: Path,
        commit: str,
        previous: bytes | None = None,
        max_commits: int = MAX_COMMITS,
    ) -> "History":
        """Read the history of a commit, and the changes of the work tree since then.

        With the saved bytes of an earlier history, only later commits are read, if that gives the
        same result. Git failures become warnings. Blocks while git runs.
        """
        try:
            git = ReadOnlyGit.from_root(root)
            shallow, has_work_tree = log_reader.read_layout(git)
            old_ledger = None if previous is None else BlameLedger.load(previous)
            is_same_commit = old_ledger is not None and old_ledger.tip == commit
            ledger = None
            if old_ledger is not None:
                ledger = log_reader.extend_history(git, old_ledger, commit, shallow, max_commits)
            if ledger is None:
                ledger = log_reader.read_full_history(git, commit, shallow, max_commits)
        except GitError as error:
            return cls([""], [str(error)], BlameLedger())
        history = cls(["", *log_reader.apply_mailmap(git, ledger.authors[1:])], [], ledger)
        history.is_unchanged = is_same_commit and ledger is old_ledger
        history._add_warnings()
        try:
            history._apply_work_tree(log_reader.read_work_tree_patches(git, commit) if has_work_tree else [])
        except GitError as error:
            history.warnings.append(f"{error}; lines may have the authors of what they were")
        return history

    def save(self) -> bytes:
        """Return the bytes that `from_commit` takes as `previous`, without the work tree."""
        return self._ledger.save()

    def find_file(self, path: str | bytes) -> FileHistory | None:
        """Return the history of a file; None if it is not in git."""
        entry = self._find_blame(path)
        if entry is None:
            return None
        ledger, last = self._ledger, entry.last
        return FileHistory(
            last_author=self.authors[ledger.credits[last]],
            last_modified=ledger.times[last] if last else None,
            last_commit=ledger.shas[last] if last else None,
            churn=sum(entry.changes) if last and ledger.lined else None,
        )

    def list_line_authors(self, path: str | bytes) -> list[int]:
        """Return the author of each line of a file, as positions in `authors`; 0 if unknown."""
        entry = self._find_blame(path)
        return [self._ledger.credits[number] for number in entry.lines] if entry else []

    def find_authors(self, path: str | bytes, start_line: int, end_line: int, data: bytes | None = None) -> list[str]:
        """Return the authors of some lines, counted from 1, both ends included; most lines first.

        If the text of the file is passed and it has changed since, the result is empty.
        """
        entry = self._find_blame(path)
        if entry is None or (data is not None and not _has_line_count(entry, data)):
            return []
        author_numbers = self._ledger.credits
        numbers = entry.lines[max(0, start_line - 1) : max(0, end_line)]
        counts = Counter(self.authors[author_numbers[number]] for number in numbers)
        del counts[""]
        return sorted(counts, key=lambda author: (-counts[author], author))

    def _find_blame(self, path: str | bytes) -> FileBlame | None:
        key = path if isinstance(path, bytes) else path.encode("utf-8", "surrogateescape")
        return self._work_tree_files.get(key) or self._ledger.files.get(key)

    def _apply_work_tree(self, patches: Iterable[FilePatch]) -> None:
        for patch in patches:
            old_blame = None if patch.old is None else self._ledger.files.get(patch.old)
            if patch.new is None or old_blame is None:
                continue
            hunks = patch.hunks
            lines = array("I") if patch.opaque else apply_hunks(old_blame.lines, hunks, commit=0)
            is_complete = old_blame.whole and not patch.opaque
            self._work_tree_files[patch.new] = FileBlame(lines, is_complete, old_blame.last, old_blame.changes)

    def _add_warnings(self) -> None:
        ledger = self._ledger
        if not ledger.lined:
            self.warnings.append(
                "some files of the history are missing, so lines have no authors and churn is "
                "not known; `git fetch --refetch` or a full clone has them"
            )
        if ledger.boundary:
            self.warnings.append(
                "this is a shallow clone, so older lines and files have no author; `git fetch --unshallow` has them"
            )
        if ledger.base:
            self.warnings.append(
                f"only the newest {ledger.commit_count} commits were read; older lines and files have no author"
            )


def _has_line_count(entry: FileBlame, data: bytes) -> bool:
    unfinished_lines = 0 if data.endswith(b"\n") or not data else 1
    return not entry.whole or len(entry.lines) == data.count(b"\n") + unfinished_lines
