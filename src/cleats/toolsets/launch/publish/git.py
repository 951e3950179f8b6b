"""Publishing to a plain git remote: a branch pushed, and the request beside it.

The commit is made by `git fast-import` in the run's own clone, from the change alone, so that its
id is the same however often it is made. A bare remote knows no requests; ours is an annotated tag
object under `refs/cleats/requests/`, whose message is the request's text: whoever fetches that ref
can read and review it, and a forge in front of the remote is free to ignore it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.config.shown import shown
from cleats.toolsets.launch.publish.port import Change, Requested, refused
from cleats.toolsets.launch.source.git import Git
from cleats.toolsets.launch.source.git_faults import Fault

REQUESTS: Final = "refs/cleats/requests/"
"""Where requests lie on the remote."""

PUSH_TIMEOUT: Final = 240.0
"""Seconds; pages are small, networks are not always quick."""


@dataclass(frozen=True, slots=True)
class GitRemote:
    """A remote that the user's own git can push to."""

    clone: Path
    """A repository that has the base commit."""
    env: Mapping[str, str]

    async def commit(self, change: Change) -> str:
        git = Git(self.env, self.clone)
        made = f"refs/cleats/made/{change.run_id}"
        await self._ask(git, "", "fast-import", "--quiet", "--force", stdin=_stream(change, made))
        sha = (await self._ask(git, "", "rev-parse", made)).decode().strip()
        await self._push(git, change, f"refs/heads/{change.branch}", sha)
        return sha

    async def request(self, change: Change, commit: str) -> Requested:
        git = Git(self.env, self.clone)
        tag = _tag(change, commit)
        made = await self._ask(git, "", "hash-object", "-t", "tag", "-w", "--stdin", stdin=tag)
        await self._push(git, change, REQUESTS + change.branch, made.decode().strip())
        return Requested(f"{shown(change.repo_url)}#{change.branch}")

    async def _push(self, git: Git, change: Change, ref: str, sha: str) -> None:
        """Have a ref of the remote name an object; what somebody else put there stays."""
        url = change.repo_url
        said = await self._ask(git, url, "ls-remote", "--", url, ref, f"{ref}^{{}}")
        lines = [line.partition("\t") for line in said.decode().splitlines()]
        named = {name: found for found, _, name in lines}
        there = named.get(ref, "")
        if there == sha:
            return
        if there and named.get(f"{ref}^{{}}", there) not in change.earlier:
            raise refused(
                f"{ref} is there already, with another commit.",
                hint="Delete it if nobody needs it, then open the request again.",
                ref=ref,
                found=there,
            )
        words = ("--quiet", "--no-verify", f"--force-with-lease={ref}:{there}")
        await self._ask(git, url, "push", *words, "--", url, f"{sha}:{ref}")

    async def _ask(self, git: Git, url: str, *words: str, stdin: bytes | None = None) -> bytes:
        try:
            return await git.ask(url, *words, stdin=stdin, seconds=PUSH_TIMEOUT)
        except ToolError as error:
            if error.code is ErrorCode.TOOLCHAIN_MISSING:
                raise
            details = error.details or {}
            by_rule = details.get("reason") == Fault.REFUSED.value
            hint = "Have its rules let the branch in, then open the request again."
            raise refused(
                error.message,
                retryable=error.retryable,
                hint=hint if by_rule else "",
                **details,
            ) from error


def _stream(change: Change, ref: str) -> bytes:
    """The commit, as fast-import reads it."""
    name, address = change.author
    who = f"{name} <{address}> {change.moment} +0000".encode()
    message = f"{change.message}\n\n{change.body}".strip().encode() + b"\n"
    lines = [
        b"commit " + ref.encode(),
        b"author " + who,
        b"committer " + who,
        b"data %d\n%s" % (len(message), message),
        b"from " + change.base_sha.encode(),
    ]
    for file in change.files:
        path = _quoted(file.path)
        if file.content is None:
            lines.append(b"D " + path)
        else:
            lines.append(b"M 100644 inline " + path)
            lines.append(b"data %d\n%s" % (len(file.content), file.content))
    return b"\n".join([*lines, b"", b"done", b""])


def _quoted(path: str) -> bytes:
    """A path as fast-import wants those with odd characters."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'.encode()


def _tag(change: Change, commit: str) -> bytes:
    name, address = change.author
    head = (
        f"object {commit}\ntype commit\ntag {change.branch.replace('/', '-')}\n"
        f"tagger {name} <{address}> {change.moment} +0000\n\n"
    )
    return f"{head}{change.title}\n\n{change.body.strip()}\n".encode()
