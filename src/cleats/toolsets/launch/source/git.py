"""Git for repositories that may come from anywhere: fetched at one commit, nothing of them run.

The environment is made from nothing: only what says who the user is and how to reach the network
passes (`kept`). No prompt, no hook, no filter, no submodule, no large file from a second server;
a symbolic link of the repository becomes a plain file with its target as text, so no reader can be
led out of the checkout. A checkout appears whole, by a rename, or not at all.
"""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime import process
from cleats.toolsets.launch.config.shown import shown
from cleats.toolsets.launch.source.git_config import is_plain
from cleats.toolsets.launch.source.git_faults import Fault, fault_of, refusal

Tell = Callable[[str], None]

SHA: Final = re.compile(r"[0-9a-f]{40}")

ANSWER_TIMEOUT: Final = 60.0
"""Seconds for a question to a checkout, or to a remote about its refs."""

FETCH_TIMEOUT: Final = 280.0
"""Seconds for a fetch: the start tools have 300 in all."""

SIZE_LIMIT: Final = 2 * 1024**3
"""Bytes of objects, and again of files. A product with its pages fits many times over."""

FILE_LIMIT: Final = 200_000
"""Files of a checkout."""

BY_COMMIT: Final = "--ignore-submodules=dirty"
"""A repository inside a checkout is compared by its commit; its own settings are not trusted."""

_WATCH: Final = 0.5
"""Seconds between two looks at how much a fetch has written."""

_KEPT: Final = frozenset(
    {
        *("HOME", "PATH", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME"),
        *("SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SYSTEMROOT", "USERPROFILE", "APPDATA", "PATHEXT", "COMSPEC"),
    }
)

_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",
    "core.autocrlf=false",
    "core.quotePath=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.attributesFile=/dev/null",
    "credential.interactive=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "protocol.http.allow=always",
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "init.defaultBranch=main",
    "commit.gpgSign=false",
)


def kept(environ: Mapping[str, str]) -> dict[str, str]:
    """What of an environment git may see: the user, the network, and settings given for git."""
    return {
        name: value
        for name, value in environ.items()
        if name.upper() in _KEPT or name.startswith("GIT_CONFIG_")
    }


@dataclass(frozen=True, slots=True)
class Remote:
    """What a remote says about itself. `head` is "" for a repository without a commit."""

    head: str
    refs: Mapping[str, str] = field(default_factory=dict)
    """Every branch and tag by its full name; a tag stands for the commit it points at."""

    def find(self, name: str) -> str:
        """The commit that a branch, tag or full ref name stands for, "" when there is none."""
        if name in ("", "HEAD"):
            return self.head
        places = (name, f"refs/heads/{name}", f"refs/tags/{name}")
        return next((self.refs[place] for place in places if place in self.refs), "")


async def ls_remote(url: str, env: Mapping[str, str]) -> Remote:
    """Ask a repository for its refs.

    Raises:
        ToolError: REPO_NOT_FOUND when there is none or it is closed to us; retryable when the
            network is at fault.
    """
    said = await Git(env).ask(url, "ls-remote", "--", url)
    head, refs = "", dict[str, str]()
    for line in said.decode(errors="replace").splitlines():
        value, _, name = line.partition("\t")
        if name == "HEAD":
            head = value
        elif name.startswith(("refs/heads/", "refs/tags/")):
            refs[name.removesuffix("^{}")] = value  # the peeled line follows its tag
    return Remote(head, refs)


async def clone_at(
    url: str,
    sha: str,
    target: Path,
    env: Mapping[str, str],
    *,
    tell: Tell = lambda _: None,
    size_limit: int = SIZE_LIMIT,
) -> None:
    """Have the files of one commit in `target`; a checkout of it that is there is kept.

    Raises:
        ToolError: REPO_NOT_FOUND for the repository, INVALID_INPUT for a commit it does not have
            or a repository over the limit, TOOLCHAIN_MISSING without git; retryable only when the
            network is at fault.
    """
    if not SHA.fullmatch(sha):
        raise ToolError(ErrorCode.INVALID_INPUT, f"{sha!r} is not a full commit id.")
    if await is_at(target, sha, env):
        return
    part = target.with_name(f"{target.name}.part")
    for half in (part, target):
        await anyio.to_thread.run_sync(_remove, half)
    part.mkdir(parents=True)
    git = Git(env, part)
    await git.ask(url, "init", "--quiet", "--template=", ".")
    for setting in ("core.symlinks=false", "core.autocrlf=false", "core.hooksPath=/dev/null"):
        await git.ask(url, "config", *setting.split("=", 1))
    tell(f"Fetching {shown(url)} at {sha[:12]}")
    await _fetch(git, url, sha, size_limit)
    await _weigh(git, url, sha, size_limit)
    await git.ask(url, "checkout", "--quiet", "--detach", sha)
    part.rename(target)


async def is_at(folder: Path, sha: str, env: Mapping[str, str]) -> bool:
    """Whether a folder is a clean checkout of a commit."""
    if not (folder / ".git").is_dir():
        return False
    git = Git(env, folder)
    try:
        head = await git.ask("", "rev-parse", "HEAD")
        words = ("--porcelain", "--untracked-files=all", BY_COMMIT)
        changed = await git.ask("", "status", *words)
    except ToolError:
        return False
    return head.decode().strip() == sha and not changed.strip()


_ROOM: Final = 1 << 20
"""Bytes that git needs in order to write anything at all."""


@dataclass(frozen=True, slots=True)
class Git:
    """Git, with all that could run a program switched off."""

    env: Mapping[str, str]
    root: Path | None = None
    ours: bool = False
    """Whether nobody else writes in the folder, so that its settings need no look."""

    async def ask(
        self,
        url: str,
        *words: str,
        stdin: bytes | None = None,
        seconds: float = ANSWER_TIMEOUT,
    ) -> bytes:
        """Return what git answers; `url` is the repository a failure is about.

        Raises:
            ToolError: by what git says about it; ILLEGAL_STATE when somebody changed the settings
                of the checkout, and nothing is asked then.
        """
        program = shutil.which("git", path=self.env.get("PATH"))
        if program is None or not Path(program).is_absolute():
            raise ToolError(ErrorCode.TOOLCHAIN_MISSING, "git is not installed.")
        if self.root is not None and not self.ours and not is_plain(self.root):
            raise _meddled(self.root)
        argv = [program, "--no-pager", *_spread(_SETTINGS), *words]
        try:
            with anyio.fail_after(seconds):
                done = await process.run(
                    argv,
                    cwd=self.root,
                    env=self._environment(program),
                    stdin=stdin,
                    output_limit=1 << 26,
                )
        except TimeoutError as error:
            raise _failed(Fault.NETWORK, url, f"git {words[0]} took too long") from error
        except process.StartError as error:
            raise ToolError(ErrorCode.TOOLCHAIN_MISSING, "git cannot be started.") from error
        if done.exit_code != 0:
            said = done.stderr.decode(errors="replace")
            fault = fault_of(said)
            if fault is Fault.OTHER and self._full():
                fault = Fault.DISK
            why = f" ({told})" if (told := refusal(said)) else ""
            raise _failed(fault, url, f"git {words[0]} failed", why)
        return done.stdout

    def _full(self) -> bool:
        """Whether there is no room where git writes, which it does not always say."""
        try:
            return self.root is not None and shutil.disk_usage(self.root).free < _ROOM
        except OSError:
            return False

    def _environment(self, program: str) -> dict[str, str]:
        made = {
            "PATH": str(Path(program).parent),
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
            **kept(self.env),
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_ATTR_NOSYSTEM": "1",
        }
        with suppress(RuntimeError):
            made.setdefault("HOME", str(Path.home()))
        return made


def _spread(settings: Sequence[str]) -> list[str]:
    filters = [f"filter.lfs.{key}" for key in ("clean=", "smudge=", "process=", "required=false")]
    return [word for setting in (*settings, *filters) for word in ("-c", setting)]


async def _fetch(git: Git, url: str, sha: str, size_limit: int) -> None:
    """Fetch one commit; a server that gives no single commits is asked for all it shows."""
    only = ("--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--quiet")
    try:
        await _bounded(git, size_limit, url, "fetch", *only, "--depth=1", "--", url, sha)
    except ToolError as error:
        if (error.details or {}).get("reason") != Fault.UNKNOWN_COMMIT.value:
            raise
        refs = ("+refs/heads/*:refs/seen/heads/*", "+refs/tags/*:refs/seen/tags/*")
        await _bounded(git, size_limit, url, "fetch", *only, "--", url, *refs)
        if await _kind(git, sha) != "commit":
            raise _failed(Fault.UNKNOWN_COMMIT, url, f"no commit {sha}") from None


async def _bounded(git: Git, size_limit: int, url: str, *words: str) -> None:
    """Ask, and stop when the answer grows over the limit on disk: git has no limit of its own."""
    fault: ToolError | None = None
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            nonlocal fault
            objects = (git.root or Path()) / ".git" / "objects"
            while await anyio.to_thread.run_sync(_size, objects) <= size_limit:  # noqa: ASYNC110 - git writes
                await anyio.sleep(_WATCH)
            fault = _too_large(size_limit)
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        try:
            await git.ask(url, *words, seconds=FETCH_TIMEOUT)
        except ToolError as error:
            fault = error
        tasks.cancel_scope.cancel()
    if fault is not None:
        raise fault


async def _kind(git: Git, sha: str) -> str:
    try:
        return (await git.ask("", "cat-file", "-t", sha)).decode().strip()
    except ToolError:
        return ""


async def _weigh(git: Git, url: str, sha: str, size_limit: int) -> None:
    """Refuse a tree that is small as objects and large as files."""
    listed = await git.ask(url, "ls-tree", "-r", "-l", "-z", "--full-tree", sha)
    sizes = [entry.split(None, 4)[3] for entry in listed.split(b"\0") if entry]
    if sum(int(size) for size in sizes if size.isdigit()) > size_limit or len(sizes) > FILE_LIMIT:
        raise _too_large(size_limit)


def _too_large(size_limit: int) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_INPUT,
        "The repository is too large to be launched.",
        details={"reason": "too_large", "limit_bytes": size_limit, "limit_files": FILE_LIMIT},
    )


def _failed(fault: Fault, url: str, what: str, why: str = "") -> ToolError:
    about = f"{shown(url)}: " if url else ""
    return ToolError(
        fault.code,
        f"{about}{what}: {fault.meaning}{why}.",
        retryable=fault.passes,
        details=fault.details,
    )


def _meddled(root: Path) -> ToolError:
    return ToolError(
        ErrorCode.ILLEGAL_STATE,
        f"somebody changed the git settings of the checkout {root.name!r}",
        hint="Put its .git/config back as it was; a launch needs no setting of yours there.",
        details={"reason": "git_config"},
    )


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total


def _remove(folder: Path) -> None:
    """Remove a half checkout, read-only objects included."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
