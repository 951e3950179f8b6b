"""Git's log read into a ledger: all of it, or what is new since the last time.

History is read along first parents, so a merge is one commit that brings all the work of its
branch. It is credited to that work's author when there was only one; else to who merged.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from cleats.toolsets.code.history.git import DIFF, Git, GitError, SilentGitError
from cleats.toolsets.code.history.ledger import Ledger
from cleats.toolsets.code.history.patches import FORMAT, Commit, Event, Parser, Patch

_LOG = ("log", "--no-show-signature", "--no-notes", "--no-decorate", "--encoding=UTF-8", FORMAT)
_ALONG = ("--first-parent", "-m", "--reverse", "--root")
_PATCHES = (*DIFF, "-l1000")
_RAW = ("--raw", "-M100%", "--no-abbrev", "--relative", "--ignore-submodules=all")
"""What can be told without reading the files: which were touched, and plain renames."""


def complete(git: Git, commit: str, shallow: frozenset[str], most: int) -> Ledger:
    """Read the history of a commit, of the newest `most` commits at most.

    Raises:
        GitError: git cannot tell it.
    """
    chain = (git.ask("rev-list", "--first-parent", commit)).decode().split()
    base = base_of(len(chain), most)
    since = chain[-base] if base else None
    credited = _credits(_outline(git, since, commit), commit)
    try:
        ledger = Ledger(base=base)
        _replay(ledger, _events(git, _log(ledger, since, commit)), credited, shallow)
    except SilentGitError:  # it would be as silent again
        raise
    except GitError:  # a blob is missing: a partial clone, or a damaged one
        ledger = Ledger(lined=False, base=base)
        _replay(ledger, _events(git, _log(ledger, since, commit)), credited, shallow)
    return ledger


def continued(
    git: Git, ledger: Ledger, commit: str, shallow: frozenset[str], most: int
) -> Ledger | None:
    """Bring a ledger to a later commit, so that it is what `complete` would give.

    None when that is not possible, because it is not of a first parent of that commit.
    """
    if ledger.boundary not in {"", *shallow}:
        return None  # more of the history has come since
    if ledger.tip == commit:
        return ledger
    try:
        git.ask("merge-base", "--is-ancestor", ledger.tip, commit)
        outline = _outline(git, ledger.tip, commit)
        chain = _chain(outline, commit)
        if not chain or chain[0].parents[:1] != (ledger.tip,):
            return None
        if base_of(ledger.base + ledger.commits + len(chain), most) != ledger.base:
            return None
        events = _events(git, _log(ledger, ledger.tip, commit))
        _replay(ledger, events, _credits(outline, commit), shallow)
    except GitError:
        return None
    return ledger


def base_of(commits: int, most: int) -> int:
    """How many old commits to leave out. In steps, lest each new commit push out an old one."""
    step = max(1, most // 5)
    return -(-max(0, commits - most) // step) * step


def work_tree(git: Git, commit: str) -> list[Patch]:
    """What has been changed in tracked files since a commit.

    Raises:
        GitError: git cannot tell.
    """
    tamed = git.tamed()
    events = _events(tamed, ["diff", *_PATCHES, commit, "--", "."])
    return [event for event in events if isinstance(event, Patch)]


class Setting(NamedTuple):
    """How a repository lies on the disk."""

    shallow: frozenset[str]
    """The commits at which a shallow clone was cut off."""
    has_work_tree: bool


def setting(git: Git) -> Setting:
    """See how a repository lies on the disk.

    Raises:
        GitError: git cannot tell.
    """
    asked = ("--is-shallow-repository", "--is-inside-work-tree", "--git-path", "shallow")
    said = (git.ask("rev-parse", *asked)).decode(errors="surrogateescape")
    is_shallow, has_work_tree, path = said.rstrip("\n").split("\n", 2)
    shallow = ""
    if is_shallow == "true":
        with suppress(OSError):
            shallow = (git.root / path).read_text("ascii", "replace")
    return Setting(frozenset(shallow.split()), has_work_tree == "true")


def known_as(git: Git, authors: Sequence[str]) -> list[str]:
    """The names that the repository's mail map gives to authors."""
    try:
        given = "".join(f"{author}\n" for author in authors)
        said = git.ask("check-mailmap", "--stdin", given=given.encode())
    except GitError:
        return list(authors)
    mapped = said.decode(errors="replace").split("\n")[:-1]
    return mapped if len(mapped) == len(authors) else list(authors)


def _outline(git: Git, since: str | None, commit: str) -> dict[str, Commit]:
    """Every commit that is new, on whatever branch it was made."""
    events = _events(git, [*_LOG, *_range(since, commit)])
    return {event.sha: event for event in events if isinstance(event, Commit)}


def _chain(outline: Mapping[str, Commit], commit: str) -> list[Commit]:
    """The commits along first parents, oldest first."""
    chain: list[Commit] = []
    at = outline.get(commit)
    while at is not None:
        chain.append(at)
        at = outline.get(at.parents[0]) if at.parents else None
    return chain[::-1]


def _credits(outline: Mapping[str, Commit], commit: str) -> dict[str, str]:
    """The one author of each merge that has only one."""
    credited: dict[str, str] = {}
    seen: set[str] = set()
    for merge in _chain(outline, commit):
        seen.add(merge.sha)
        authors: set[str] = set()
        ahead = list(merge.parents[1:])
        while ahead:
            sha = ahead.pop()
            if sha in seen or sha not in outline:
                continue
            seen.add(sha)
            ahead += outline[sha].parents
            if len(outline[sha].parents) < 2:
                authors.add(outline[sha].author)
        if len(authors) == 1:
            credited[merge.sha] = authors.pop()
    return credited


def _replay(
    ledger: Ledger,
    events: Iterator[Event],
    credited: Mapping[str, str],
    shallow: frozenset[str],
) -> None:
    number = 0
    for event in events:
        if isinstance(event, Patch):
            ledger.apply(event, number)
            continue
        number = ledger.open(event, credited.get(event.sha, event.author))
        if event.sha in shallow:
            ledger.boundary = event.sha
            number = 0
    ledger.close()


def _log(ledger: Ledger, since: str | None, commit: str) -> list[str]:
    how = _PATCHES if ledger.lined else _RAW
    return [*_LOG, *_ALONG, *how, *_range(since, commit)]


def _events(git: Git, words: Sequence[str]) -> Iterator[Event]:
    parser = Parser()
    with git.read(*words) as pieces:
        for piece in pieces:
            for event in parser.feed(piece):
                yield event
    for event in parser.end():
        yield event


def _range(since: str | None, commit: str) -> list[str]:
    return [commit, "--"] if since is None else [commit, f"^{since}", "--"]
