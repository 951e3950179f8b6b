"""Git for untrusted repositories: one commit is fetched, and nothing of it is run.

Commands are hardened by `cleats.system.git`. A symbolic link of the repository becomes a plain file,
so no reader can be led out of the checkout, which appears complete, by a rename, or not at all.
"""

import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.git import ONLINE_SETTINGS, GitError, build_argv, build_environment, find_git, has_harmless_settings
from cleats.system.processes import process
from cleats.toolsets.launch.config.secrets import redact_url
from cleats.toolsets.launch.runs.storage import measure_folder

ProgressReporter = Callable[[str], None]

COMMIT_ID_PATTERN: Final = re.compile(r"[0-9a-f]{40}")

ANSWER_TIMEOUT_SECONDS: Final = 60.0
"""Seconds for a query to a checkout, or to a remote about its refs."""

FETCH_TIMEOUT_SECONDS: Final = 280.0
"""Seconds for a fetch; the start tools have 300 in total."""

MAX_REPOSITORY_BYTES: Final = 2 * 1024**3
"""Limit of the objects, and again of the files. A product with its pages is far smaller."""

MAX_REPOSITORY_FILES: Final = 200_000
"""Files of a checkout."""

IGNORE_DIRTY_SUBMODULES: Final = "--ignore-submodules=dirty"
"""Git option: a nested repository is compared by its commit; its own settings are not trusted."""

_SIZE_CHECK_SECONDS: Final = 0.5
"""Seconds between two checks of how much a fetch has written."""

_CHECKOUT_SETTINGS: Final = (
    *ONLINE_SETTINGS,
    "core.symlinks=false",
    "core.autocrlf=false",
    "core.quotePath=false",
    "core.attributesFile=/dev/null",
    "advice.detachedHead=false",
    "init.defaultBranch=main",
)
"""Settings that make a checkout the same on every machine."""


class GitFault(Enum):
    """The reason why git failed, as far as a caller can act on it."""

    NETWORK = ("network", "the network or the server failed", ErrorCode.REPO_NOT_FOUND, True)
    NOT_FOUND = ("not_found", "the repository does not exist", ErrorCode.REPO_NOT_FOUND)
    ACCESS_DENIED = ("no_access", "access is denied", ErrorCode.REPO_NOT_FOUND)
    UNKNOWN_COMMIT = ("unknown_commit", "the repository has no such commit", ErrorCode.INVALID_INPUT)
    PROTOCOL = ("protocol_not_allowed", "this kind of address is not allowed", ErrorCode.INVALID_INPUT)
    DISK_FULL = ("no_room", "the disk is full", ErrorCode.INTERNAL, True)
    PUSH_CONFLICT = ("push_raced", "another process is pushing to the remote", ErrorCode.REPO_NOT_FOUND, True)
    PUSH_REJECTED = ("push_refused", "the remote rejected the push", ErrorCode.REPO_NOT_FOUND)
    OTHER = ("git_failed", "the repository cannot be read or written", ErrorCode.REPO_NOT_FOUND)

    def __init__(self, reason: str, description: str, code: ErrorCode, is_transient: bool = False) -> None:
        self.reason = reason
        self.description = description
        self.code = code
        self.is_transient = is_transient
        """True if the same command may succeed later."""

    @property
    def details(self) -> dict[str, str]:
        """The error details for the caller; an internal error always names its class."""
        details = {"reason": self.reason}
        return {**details, "cause_class": "OSError"} if self.code is ErrorCode.INTERNAL else details


_FAULT_PATTERNS: Final[tuple[tuple[GitFault, str], ...]] = (
    (GitFault.DISK_FULL, "No space left on device|Disk quota exceeded"),
    # These are reported as rejections, too, but not because of a rule.
    (GitFault.PUSH_CONFLICT, r"\(stale info\)|\(fetch first\)|cannot lock ref|failed to lock"),
    (GitFault.NETWORK, r"\[remote rejected\][^\n]*\(internal server error\)"),
    (GitFault.PUSH_REJECTED, r"\[(remote )?rejected\]|hook declined|protected branch"),
    (GitFault.PROTOCOL, "transport '[^']*' not allowed|is not a git command"),
    (GitFault.UNKNOWN_COMMIT, "not our ref|unadvertised object|couldn't find remote ref|is not a tree"),
    (
        GitFault.ACCESS_DENIED,
        "Authentication failed|could not read (Username|Password)|Permission denied|error: 40[13]",
    ),
    (GitFault.ACCESS_DENIED, "error: 40[13]|terminal prompts disabled|dubious ownership|Host key verification"),
    (GitFault.NOT_FOUND, "Repository not found|repository '[^']*' not found|does not exist|error: 404"),
    (GitFault.NOT_FOUND, "not appear to be a git repository|not a git repository"),
    (GitFault.NETWORK, "Could not resolve|Connection (timed out|refused|reset|closed)|Failed to connect"),
    (GitFault.NETWORK, "Couldn't connect|Operation (timed out|too slow)|Network is unreachable|No route to host"),
    (GitFault.NETWORK, "early EOF|hung up unexpectedly|unexpected disconnect|RPC failed|Empty reply|Temporary failure"),
    (GitFault.NETWORK, r"error: (429|5\d\d)"),
)
"""Patterns in order of precedence: git ends most failures with a line about the remote."""


_REJECTION_REASON_PATTERN: Final = re.compile(r"\[(?:remote )?rejected\][^\n]*\(([\w .,'-]{1,80})\)")
"""The reason that git repeats for a rejected push, mostly the name of a rule."""


def classify_fault(stderr: str) -> GitFault:
    """Return the first fault whose patterns match the error output of git."""
    faults = (fault for fault, pattern in _FAULT_PATTERNS if re.search(pattern, stderr, re.IGNORECASE))
    return next(faults, GitFault.OTHER)


async def find_remote_commit(url: str, env: Mapping[str, str], name: str = "HEAD") -> str:
    """Return the commit of HEAD, a branch, a tag or a full ref name of a remote repository; "" without one.

    Raises:
        ToolError: REPO_NOT_FOUND when it does not exist or access is denied; retryable when the
            network failed.
    """
    output = await HardenedGit(env).run(url, "ls-remote", "--", url)
    lines = [line.partition("\t") for line in output.decode(errors="replace").splitlines()]
    served_refs = ("HEAD", "refs/heads/", "refs/tags/")
    # The peeled line of a tag follows it.
    commits = {ref.removesuffix("^{}"): commit for commit, _, ref in lines if ref.startswith(served_refs)}
    candidates = (name or "HEAD", f"refs/heads/{name}", f"refs/tags/{name}")
    return next((commits[candidate] for candidate in candidates if candidate in commits), "")


async def clone_commit(
    url: str,
    sha: str,
    target: Path,
    env: Mapping[str, str],
    *,
    report_progress: ProgressReporter = lambda _: None,
    size_limit: int = MAX_REPOSITORY_BYTES,
) -> None:
    """Check out the files of one commit in `target`; an existing clean checkout of it is kept.

    Raises:
        ToolError: REPO_NOT_FOUND for the repository, INVALID_INPUT for a commit it does not have or
            a repository over the limit, TOOLCHAIN_MISSING without git; retryable only when the
            network failed.
    """
    if not COMMIT_ID_PATTERN.fullmatch(sha):
        raise ToolError(ErrorCode.INVALID_INPUT, f"{sha!r} is not a full commit id.")
    if await is_clean_checkout(target, sha, env):
        return
    partial_target = target.with_name(f"{target.name}.part")
    for leftover in (partial_target, target):
        await anyio.to_thread.run_sync(_remove_folder, leftover)
    partial_target.mkdir(parents=True)
    git = HardenedGit(env, partial_target)
    await git.run(url, "init", "--quiet", "--template=", ".")
    for setting in ("core.symlinks=false", "core.autocrlf=false", "core.hooksPath=/dev/null"):
        await git.run(url, "config", *setting.split("=", 1))
    report_progress(f"Fetching {redact_url(url)} at {sha[:12]}")
    await _fetch_commit(git, url, sha, size_limit)
    listing = await git.run(url, "ls-tree", "-r", "-l", "-z", "--full-tree", sha)
    sizes = [entry.split(None, 4)[3] for entry in listing.split(b"\0") if entry]
    # A tree may be small as objects but large as files.
    if sum(int(size) for size in sizes if size.isdigit()) > size_limit or len(sizes) > MAX_REPOSITORY_FILES:
        raise _too_large_error(size_limit)
    await git.run(url, "checkout", "--quiet", "--detach", sha)
    partial_target.rename(target)


async def is_clean_checkout(folder: Path, sha: str, env: Mapping[str, str]) -> bool:
    """Return whether a folder is a clean checkout of a commit."""
    if not (folder / ".git").is_dir():
        return False
    git = HardenedGit(env, folder)
    try:
        head = await git.run("", "rev-parse", "HEAD")
        options = ("--porcelain", "--untracked-files=all", IGNORE_DIRTY_SUBMODULES)
        changed = await git.run("", "status", *options)
    except ToolError:
        return False
    return head.decode().strip() == sha and not changed.strip()


_MIN_FREE_BYTES: Final = 1 << 20
"""Free space that git needs in order to write anything at all."""


@dataclass(frozen=True, slots=True)
class HardenedGit:
    """A git runner in which everything is disabled that could start another program."""

    env: Mapping[str, str]
    root: Path | None = None
    is_private: bool = False
    """True if nobody else writes in the folder, so that its settings need no check."""

    async def run(
        self, url: str, *args: str, stdin: bytes | None = None, seconds: float = ANSWER_TIMEOUT_SECONDS
    ) -> bytes:
        """Run a git command and return its output; `url` is the repository that an error names.

        Raises:
            ToolError: By the fault that git reports; ILLEGAL_STATE when the settings of the
                checkout were changed, and then git is not run.
        """
        try:
            program = find_git(self.root, self.env.get("PATH"))
        except GitError:
            raise ToolError(ErrorCode.TOOLCHAIN_MISSING, "git is not installed.") from None
        if self.root is not None and not self.is_private and not has_harmless_settings(self.root):
            raise ToolError(
                ErrorCode.ILLEGAL_STATE,
                f"the git configuration of the checkout has changed: {self.root.name!r}",
                hint="Restore its .git/config; a launch needs no changes there.",
                details={"reason": "git_config"},
            )
        try:
            with anyio.fail_after(seconds):
                completed = await process.run(
                    build_argv(program, args, _CHECKOUT_SETTINGS, filters=("lfs",)),
                    cwd=self.root,
                    env={**build_environment(program, self.env, online=True), "GIT_ATTR_NOSYSTEM": "1"},
                    stdin=stdin,
                    output_limit=1 << 26,
                )
        except TimeoutError as error:
            raise _git_error(GitFault.NETWORK, url, f"git {args[0]} took too long") from error
        except process.StartError as error:
            raise ToolError(ErrorCode.TOOLCHAIN_MISSING, "git cannot be started.") from error
        if completed.exit_code != 0:
            stderr = completed.stderr.decode(errors="replace")
            fault = classify_fault(stderr)
            with suppress(OSError):  # git does not always report that the disk is full
                if fault is GitFault.OTHER and self.root and shutil.disk_usage(self.root).free < _MIN_FREE_BYTES:
                    fault = GitFault.DISK_FULL
            rejection = _REJECTION_REASON_PATTERN.search(stderr)
            explanation = f" ({rejection[1]})" if rejection else ""
            raise _git_error(fault, url, f"git {args[0]} failed", explanation)
        return completed.stdout


async def _fetch_commit(git: HardenedGit, url: str, sha: str, size_limit: int) -> None:
    """Fetch one commit; if the server refuses single commits, fetch all branches and tags."""
    options = ("--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--quiet")
    try:
        await _run_with_size_limit(git, size_limit, url, "fetch", *options, "--depth=1", "--", url, sha)
    except ToolError as error:
        if (error.details or {}).get("reason") != GitFault.UNKNOWN_COMMIT.reason:
            raise
        refs = ("+refs/heads/*:refs/seen/heads/*", "+refs/tags/*:refs/seen/tags/*")
        await _run_with_size_limit(git, size_limit, url, "fetch", *options, "--", url, *refs)
        with suppress(ToolError):
            if await git.run("", "cat-file", "-t", sha) == b"commit\n":
                return
        raise _git_error(GitFault.UNKNOWN_COMMIT, url, f"no commit {sha}") from None


async def _run_with_size_limit(git: HardenedGit, size_limit: int, url: str, *args: str) -> None:
    """Run git and stop it when it writes more than the limit; git has no such limit itself."""
    fault: ToolError | None = None
    async with anyio.create_task_group() as tasks:

        async def watch_size() -> None:
            nonlocal fault
            objects = (git.root or Path()) / ".git" / "objects"
            while await anyio.to_thread.run_sync(measure_folder, objects) <= size_limit:  # noqa: ASYNC110 - git writes
                await anyio.sleep(_SIZE_CHECK_SECONDS)
            fault = _too_large_error(size_limit)
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch_size)
        try:
            await git.run(url, *args, seconds=FETCH_TIMEOUT_SECONDS)
        except ToolError as error:
            fault = error
        tasks.cancel_scope.cancel()
    if fault is not None:
        raise fault


def _too_large_error(size_limit: int) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_INPUT,
        "The repository is too large to be launched.",
        details={"reason": "too_large", "limit_bytes": size_limit, "limit_files": MAX_REPOSITORY_FILES},
    )


def _git_error(fault: GitFault, url: str, operation: str, explanation: str = "") -> ToolError:
    prefix = f"{redact_url(url)}: " if url else ""
    return ToolError(
        fault.code,
        f"{prefix}{operation}: {fault.description}{explanation}.",
        retryable=fault.is_transient,
        details=fault.details,
    )


def _remove_folder(folder: Path) -> None:
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
