"""Git's log read into a blame ledger: the full history, or the commits since the last time.

History is read along first parents, so a merge is one commit that contains all the work of its
branch. It is credited to the author of that work if there is only one, otherwise to the person who
merged.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from cleats.system.git import GitError, ReadOnlyGit, SilentGitError
from cleats.toolsets.code.analysis.history.git_log import (
    LOG_FORMAT_OPTION,
    Commit,
    FilePatch,
    GitLogParser,
    HistoryEvent,
)
from cleats.toolsets.code.analysis.history.line_authors import BlameLedger

_LOG_ARGS = ("log", "--no-show-signature", "--no-notes", "--no-decorate", "--encoding=UTF-8", LOG_FORMAT_OPTION)
_FIRST_PARENT_OPTIONS = ("--first-parent", "-m", "--reverse", "--root")
_PATCH_OPTIONS = (
    "--no-color",
    "--submodule=short",
    "--ignore-submodules=all",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--relative",
    "-O/dev/null",
    "-U0",
    "-M",
    "-p",
    "-l1000",
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

    Return None if that is not possible, because the ledger does not belong to a first parent of
    that commit.
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


def read_work_tree_patches(git: ReadOnlyGit, commit: str) -> list[FilePatch]:
    """Return the changes of tracked files since a commit.

    Raises:
        GitError: Git cannot compare them.
    """
    safe_git = git.with_filters_disabled()
    events = _stream_events(safe_git, ["diff", *_PATCH_OPTIONS, commit, "--", "."])
    return [event for event in events if isinstance(event, FilePatch)]


class RepositoryLayout(NamedTuple):
    """The layout of a repository on the disk."""

    shallow: frozenset[str]
    """The commits at which a shallow clone was cut off."""
    has_work_tree: bool


def read_layout(git: ReadOnlyGit) -> RepositoryLayout:
    """Read the layout of a repository on the disk.

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
    return RepositoryLayout(frozenset(shallow.split()), has_work_tree == "true")


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
    """Return the commits along first parents, oldest first."""
    chain: list[Commit] = []
    current = outline.get(commit)
    while current is not None:
        chain.append(current)
        current = outline.get(current.parents[0]) if current.parents else None
    return chain[::-1]


def _find_merge_authors(outline: Mapping[str, Commit], commit: str) -> dict[str, str]:
    """Return the author of each merge whose commits have only one author."""
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
    ledger: BlameLedger,
    events: Iterator[HistoryEvent],
    authors_by_merge: Mapping[str, str],
    shallow: frozenset[str],
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
            for event in parser.feed(piece):
                yield event
    for event in parser.finish():
        yield event


def _build_range_args(since: str | None, commit: str) -> list[str]:
    return [commit, "--"] if since is None else [commit, f"^{since}", "--"]
