"""Who wrote each line of a repository, who touched each file last, and how busy it is.

Everything is told as of a commit, and then carried over to the files as they lie in the work tree:
lines that are not committed yet have no author.
"""

from array import array
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from cleats.toolsets.code.history import reading
from cleats.toolsets.code.history.git import Git, GitError
from cleats.toolsets.code.history.ledger import Entry, Ledger, edited
from cleats.toolsets.code.history.patches import Patch

MOST_COMMITS = 50_000
"""Commits along first parents; more take minutes, and their authors have long moved on."""


class FileHistory(NamedTuple):
    """What git knows of one file."""

    last_author: str
    """`Name <mail>`; empty when it is not known."""
    last_modified: int | None
    """When the last commit that touched it was made, in seconds since 1970."""
    last_commit: str | None
    churn: int | None
    """Added and removed lines over the last ten commits that touched it."""


class History(Struct):
    """The history of a work tree. Paths are relative to its root, with `/`."""

    authors: list[str]
    """`Name <mail>`, in the order of their first commits; the first one is empty."""
    warnings: list[str]
    _ledger: Ledger
    _changed: dict[bytes, Entry] = {}
    is_as_saved: bool = False
    """Whether it would be saved as it was: no commit has come."""

    @classmethod
    def of(
        cls,
        root: Path,
        commit: str,
        previous: bytes | None = None,
        most_commits: int = MOST_COMMITS,
    ) -> "History":
        """Read the history of a commit, and what the work tree has on top of it.

        With what an earlier history was saved as, only commits since then are read, if that gives
        the same. Git's failures become warnings. Blocks while git runs.
        """
        try:
            git = Git.at(root)
            shallow, has_work_tree = reading.setting(git)
            before = None if previous is None else Ledger.load(previous)
            same = before is not None and before.tip == commit
            ledger = None
            if before is not None:
                ledger = reading.continued(git, before, commit, shallow, most_commits)
            if ledger is None:
                ledger = reading.complete(git, commit, shallow, most_commits)
        except GitError as error:
            return cls([""], [str(error)], Ledger())
        made = cls(["", *reading.known_as(git, ledger.authors[1:])], [], ledger)
        made.is_as_saved = same and ledger is before
        made._warn()
        try:
            made._change(reading.work_tree(git, commit) if has_work_tree else [])
        except GitError as error:
            made.warnings.append(f"{error}; lines may have the authors of what they were")
        return made

    def save(self) -> bytes:
        """What `of` takes as `previous`; it knows nothing of the work tree."""
        return self._ledger.save()

    def file(self, path: str | bytes) -> FileHistory | None:
        """What is known of a file; None when it is not in git."""
        entry = self._entry(path)
        if entry is None:
            return None
        ledger, last = self._ledger, entry.last
        return FileHistory(
            last_author=self.authors[ledger.credits[last]],
            last_modified=ledger.times[last] if last else None,
            last_commit=ledger.shas[last] if last else None,
            churn=sum(entry.changes) if last and ledger.lined else None,
        )

    def line_authors(self, path: str | bytes) -> list[int]:
        """Who wrote each line of a file, as positions in `authors`; 0 is nobody known."""
        entry = self._entry(path)
        return [self._ledger.credits[number] for number in entry.lines] if entry else []

    def authors_of(
        self, path: str | bytes, start_line: int, end_line: int, data: bytes | None = None
    ) -> list[str]:
        """Who wrote some lines, counted from 1, the last included; who wrote most comes first.

        With the text of the file, nobody is named when it has become another one since.
        """
        entry = self._entry(path)
        if entry is None or (data is not None and not _fits(entry, data)):
            return []
        credited = self._ledger.credits
        numbers = entry.lines[max(0, start_line - 1) : max(0, end_line)]
        counts = Counter(self.authors[credited[number]] for number in numbers)
        del counts[""]
        return sorted(counts, key=lambda author: (-counts[author], author))

    def _entry(self, path: str | bytes) -> Entry | None:
        key = path if isinstance(path, bytes) else path.encode("utf-8", "surrogateescape")
        return self._changed.get(key) or self._ledger.files.get(key)

    def _change(self, patches: Iterable[Patch]) -> None:
        for patch in patches:
            known = None if patch.old is None else self._ledger.files.get(patch.old)
            if patch.new is None or known is None:
                continue
            hunks = patch.hunks
            lines = array("I") if patch.opaque else edited(known.lines, hunks, commit=0)
            whole = known.whole and not patch.opaque
            self._changed[patch.new] = Entry(lines, whole, known.last, known.changes)

    def _warn(self) -> None:
        ledger = self._ledger
        if not ledger.lined:
            self.warnings.append(
                "some files of the history are missing, so lines have no authors and churn is "
                "not known; `git fetch --refetch` or a full clone has them"
            )
        if ledger.boundary:
            self.warnings.append(
                "this is a shallow clone, so older lines and files have no author; "
                "`git fetch --unshallow` has them"
            )
        if ledger.base:
            self.warnings.append(
                f"only the newest {ledger.commits} commits were read; older lines and files have "
                "no author"
            )


def _fits(entry: Entry, data: bytes) -> bool:
    last = 0 if data.endswith(b"\n") or not data else 1
    return not entry.whole or len(entry.lines) == data.count(b"\n") + last
