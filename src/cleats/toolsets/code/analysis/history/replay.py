"""The author of each line of a repository, the last author of each file, and its churn.

Everything is computed as of a commit and then carried over to the files in the work tree: lines that are not committed
yet have no author. History is read along first parents, so a merge is one commit that contains all the work of its
branch. It is credited to the author of that work if there is only one, otherwise to the person who merged.
"""

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from cleats.system.git import GitError, ReadOnlyGit, SilentGitError
from cleats.toolsets.code.analysis.formats.outline import count_lines
from cleats.toolsets.code.analysis.history.line_authors import (
    LOG_FORMAT_OPTION,
    BlameLedger,
    Commit,
    FileBlame,
    FilePatch,
    GitLogParser,
    HistoryEvent,
    apply_hunks,
)

_LOG_ARGS = ("log", "--no-show-signature", "--no-notes", "--no-decorate", "--encoding=UTF-8", LOG_FORMAT_OPTION)
_FIRST_PARENT_OPTIONS = ("--first-parent", "-m", "--reverse", "--root")
_PATCH_OPTIONS = (
    *("--no-color", "--submodule=short", "--ignore-submodules=all", "--src-prefix=a/", "--dst-prefix=b/"),
    *("--inter-hunk-context=0", "--diff-algorithm=myers", "--relative", "-O/dev/null", "-U0", "-M", "-p", "-l1000"),
)
"""Options of every patch, whatever the repository configures."""

_RAW_OPTIONS = ("--raw", "-M100%", "--no-abbrev", "--relative", "--ignore-submodules=all")
"""Options that do not read the files: changed paths, and exact renames."""


def read_full_history(git: ReadOnlyGit, commit: str, shallow: frozenset[str], max_commits: int) -> BlameLedger:
    """Read the history of a commit, at most the newest `max_commits` commits.

    Raises:
        GitError: Git cannot read the history.
    """
    chain = (git.run("rev-list", "--first-parent", commit)).decode().split()
    base = count_skipped_commits(len(chain), max_commits)
    since = chain[-base] if base else None
    authors_by_merge = _find_merge_authors(_read_commits(git, since, commit), commit)
    try:
        ledger = BlameLedger(base=base)
        _replay_events(ledger, _stream_events(git, _build_log_args(ledger, since, commit)), authors_by_merge, shallow)
    except SilentGitError:  # a second attempt would block as well
        raise
    except GitError:  # a blob is missing: a partial clone, or a damaged one
        ledger = BlameLedger(lined=False, base=base)
        _replay_events(ledger, _stream_events(git, _build_log_args(ledger, since, commit)), authors_by_merge, shallow)
    return ledger


def extend_history(
    git: ReadOnlyGit, ledger: BlameLedger, commit: str, shallow: frozenset[str], max_commits: int
) -> BlameLedger | None:
    """Extend a ledger to a later commit, with the same result as `read_full_history`.

    Return None if that is not possible, because the ledger does not belong to a first parent of that commit.
    """
    if ledger.boundary not in {"", *shallow}:
        return None  # more of the history has been fetched since
    if ledger.tip == commit:
        return ledger
    try:
        git.run("merge-base", "--is-ancestor", ledger.tip, commit)
        outline = _read_commits(git, ledger.tip, commit)
        chain = _follow_first_parents(outline, commit)
        if not chain or chain[0].parents[:1] != (ledger.tip,):
            return None
        if count_skipped_commits(ledger.base + ledger.commit_count + len(chain), max_commits) != ledger.base:
            return None
        events = _stream_events(git, _build_log_args(ledger, ledger.tip, commit))
        _replay_events(ledger, events, _find_merge_authors(outline, commit), shallow)
    except GitError:
        return None
    return ledger


def count_skipped_commits(commit_count: int, max_commits: int) -> int:
    """Return how many old commits to skip; in steps, so that few new commits drop old ones."""
    step = max(1, max_commits // 5)
    return -(-max(0, commit_count - max_commits) // step) * step


def read_work_tree_patches(git: ReadOnlyGit, commit: str, paths: Iterable[str] = (".",)) -> list[FilePatch]:
    """Return the changes of tracked files since a commit.

    Raises:
        GitError: Git cannot compare them.
    """
    safe_git = git.with_filters_disabled()
    events = _stream_events(safe_git, ["diff", *_PATCH_OPTIONS, commit, "--", *paths])
    return [event for event in events if isinstance(event, FilePatch)]


def read_layout(git: ReadOnlyGit) -> tuple[frozenset[str], bool]:
    """Return the commits at which a shallow clone was cut off, and whether there is a work tree.

    Raises:
        GitError: Git cannot read it.
    """
    options = ("--is-shallow-repository", "--is-inside-work-tree", "--git-path", "shallow")
    output = (git.run("rev-parse", *options)).decode(errors="surrogateescape")
    is_shallow, has_work_tree, path = output.rstrip("\n").split("\n", 2)
    shallow = ""
    if is_shallow == "true":
        with suppress(OSError):
            shallow = (git.root / path).read_text("ascii", "replace")
    return frozenset(shallow.split()), has_work_tree == "true"


def apply_mailmap(git: ReadOnlyGit, authors: Sequence[str]) -> list[str]:
    """Return the authors with the names that the mailmap of the repository gives them."""
    try:
        stdin = "".join(f"{author}\n" for author in authors)
        output = git.run("check-mailmap", "--stdin", stdin=stdin.encode())
    except GitError:
        return list(authors)
    mapped = output.decode(errors="replace").split("\n")[:-1]
    return mapped if len(mapped) == len(authors) else list(authors)


def _read_commits(git: ReadOnlyGit, since: str | None, tip: str) -> dict[str, Commit]:
    """Return every new commit by id, whatever branch it was made on."""
    events = _stream_events(git, [*_LOG_ARGS, *_build_range_args(since, tip)])
    return {event.sha: event for event in events if isinstance(event, Commit)}


def _follow_first_parents(outline: Mapping[str, Commit], commit: str) -> list[Commit]:
    chain: list[Commit] = []
    current = outline.get(commit)
    while current is not None:
        chain.append(current)
        current = outline.get(current.parents[0]) if current.parents else None
    return chain[::-1]


def _find_merge_authors(outline: Mapping[str, Commit], commit: str) -> dict[str, str]:
    authors_by_merge: dict[str, str] = {}
    visited: set[str] = set()
    for merge in _follow_first_parents(outline, commit):
        visited.add(merge.sha)
        authors: set[str] = set()
        pending_shas = list(merge.parents[1:])
        while pending_shas:
            sha = pending_shas.pop()
            if sha in visited or sha not in outline:
                continue
            visited.add(sha)
            pending_shas += outline[sha].parents
            if len(outline[sha].parents) < 2:
                authors.add(outline[sha].author)
        if len(authors) == 1:
            authors_by_merge[merge.sha] = authors.pop()
    return authors_by_merge


def _replay_events(
    ledger: BlameLedger, events: Iterator[HistoryEvent], authors_by_merge: Mapping[str, str], shallow: frozenset[str]
) -> None:
    number = 0
    for event in events:
        if isinstance(event, FilePatch):
            ledger.apply_patch(event, number)
            continue
        number = ledger.open_commit(event, authors_by_merge.get(event.sha, event.author))
        if event.sha in shallow:
            ledger.boundary = event.sha
            number = 0
    ledger.close_commit()


def _build_log_args(ledger: BlameLedger, since: str | None, commit: str) -> list[str]:
    change_options = _PATCH_OPTIONS if ledger.lined else _RAW_OPTIONS
    return [*_LOG_ARGS, *_FIRST_PARENT_OPTIONS, *change_options, *_build_range_args(since, commit)]


def _stream_events(git: ReadOnlyGit, args: Sequence[str]) -> Iterator[HistoryEvent]:
    parser = GitLogParser()
    with git.stream(*args) as pieces:
        for piece in pieces:
            yield from parser.feed(piece)
    yield from parser.finish()


def _build_range_args(since: str | None, commit: str) -> list[str]:
    return [commit, "--"] if since is None else [commit, f"^{since}", "--"]


MAX_COMMITS = 50_000
"""Commits along first parents. More take minutes, and their authors have long moved on."""

MAX_COMPARED_PATHS = 100
"""Files of the work tree that are compared one by one; for more of them, git compares all."""


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
    is_dirty: bool = False
    """True if a file that was compared with the commit differs from it."""

    @classmethod
    def from_commit(
        cls,
        root: Path,
        commit: str,
        previous: bytes | None = None,
        max_commits: int = MAX_COMMITS,
        *,
        paths: Collection[str] | None = None,
    ) -> "History":
        """Read the history of a commit, and the changes of the work tree since then.

        With the saved bytes of an earlier history, only later commits are read, if that gives the
        same result. With `paths`, and without a later commit, only these files have to be right.
        Git failures become warnings. Blocks while git runs.
        """
        try:
            git = ReadOnlyGit.from_root(root)
            shallow, has_work_tree = read_layout(git)
            old_ledger = BlameLedger.load(previous) if previous else None
            is_same_commit = old_ledger is not None and old_ledger.tip == commit
            ledger = extend_history(git, old_ledger, commit, shallow, max_commits) if old_ledger else None
            ledger = ledger or read_full_history(git, commit, shallow, max_commits)
        except GitError as error:
            return cls([""], [str(error)], BlameLedger())
        history = cls(list(ledger.authors), [], ledger)
        history.is_unchanged = is_same_commit and ledger is old_ledger
        history._add_warnings()
        is_limited = bool(paths) and history.is_unchanged and history._can_limit_to(paths or ())
        history._map_authors(git, paths if is_limited else None)
        pathspecs = [f":(literal){path}" for path in sorted(paths or ())] if is_limited else ["."]
        try:
            history._apply_work_tree(read_work_tree_patches(git, commit, pathspecs) if has_work_tree else [])
        except GitError as error:
            history.warnings.append(f"{error}; lines may have the authors of what they were")
        return history

    def _can_limit_to(self, paths: Collection[str]) -> bool:
        """Return whether only these files have to be compared: if all are in the commit, so that none was renamed."""
        return len(paths) <= MAX_COMPARED_PATHS and all(path.encode() in self._ledger.files for path in paths)

    def _map_authors(self, git: ReadOnlyGit, paths: Collection[str] | None) -> None:
        """Apply the mailmap to the authors of some files, or to all: git writes every name on its own."""
        ledger = self._ledger
        if paths is None:
            numbers = list(range(1, len(self.authors)))
        else:
            blames = [ledger.files[path.encode()] for path in paths]
            commits = {blame.last for blame in blames}.union(*(blame.lines for blame in blames))
            numbers = sorted({ledger.credits[commit] for commit in commits} - {0})
        mapped = apply_mailmap(git, [self.authors[number] for number in numbers])
        for number, author in zip(numbers, mapped, strict=True):
            self.authors[number] = author

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
            last_commit=ledger.shas[last].hex() if last else None,
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
        if entry is None or (data is not None and entry.whole and len(entry.lines) != count_lines(data)):
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
            self.is_dirty = True
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
