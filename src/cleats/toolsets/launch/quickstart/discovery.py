"""A look at a repository that is not here: which commit is its head, what files it has.

Only names and a handful of small files are fetched where the server can do that (a clone without
blobs); where it cannot, git fetches the one commit whole. Nothing of it is kept.
"""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.config.shown import shown
from cleats.toolsets.launch.quickstart.signals import wanted
from cleats.toolsets.launch.source.git import Git, ls_remote

FETCH_SECONDS: Final = 200.0
"""The whole call has 300."""

LARGEST: Final = 256 << 10
"""Bytes of a README or manifest that are looked at."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen of a repository."""

    head: str
    names: tuple[str, ...]
    texts: Mapping[str, str]


async def head_of(url: str, env: Mapping[str, str], ref: str = "HEAD") -> str:
    """The commit that a repository's head, or a branch or tag of it, is at.

    Raises:
        ToolError: REPO_NOT_FOUND, retryable when the network is at fault.
    """
    remote = await ls_remote(url, env)
    found = remote.find(ref)
    if not found:
        what = "no commit" if ref == "HEAD" else f"no branch or tag {ref!r}"
        raise ToolError(ErrorCode.REPO_NOT_FOUND, f"{shown(url)} has {what}")
    return found


async def look(url: str, env: Mapping[str, str]) -> Sight:
    """The head of a repository, the names of its files, and the texts that say something.

    Raises:
        ToolError: as `head_of`.
    """
    head = await head_of(url, env)
    folder = Path(await anyio.to_thread.run_sync(lambda: mkdtemp(prefix="cleats-look-")))
    try:
        git = Git(env, folder, ours=True)
        await git.ask(url, "init", "--quiet", "--template=", ".")
        await git.ask(url, "remote", "add", "origin", url)
        await git.ask(url, "config", "remote.origin.promisor", "true")
        await git.ask(url, "config", "remote.origin.partialclonefilter", "blob:none")
        await git.ask(
            url,
            *("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--depth=1"),
            *("--filter=blob:none", "origin", head),
            seconds=FETCH_SECONDS,
        )
        listed = await git.ask(url, "ls-tree", "-r", "-z", "--name-only", "--full-tree", head)
        names = tuple(filter(None, listed.decode(errors="replace").split("\0")))
        texts = {
            name: (await git.ask(url, "cat-file", "blob", f"{head}:{name}"))[:LARGEST].decode(
                errors="replace"
            )
            for name in wanted(names)
        }
    finally:
        with suppress(OSError), anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))
    return Sight(head, names, texts)
