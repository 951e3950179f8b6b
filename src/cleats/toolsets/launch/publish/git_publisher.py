"""Publishing to a plain git remote: a pushed branch, and the review request next to it.

`git fast-import` creates the commit in the clone of the run, from the change alone, so that its id
is the same on every attempt. A bare remote has no review requests; ours is an annotated tag object
under `refs/cleats/requests/` whose message is the text of the request. Anyone who fetches that ref
can read and review it, and a forge in front of the remote can ignore it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.config.secrets import redact_url
from cleats.toolsets.launch.git.client import GitFault, HardenedGit
from cleats.toolsets.launch.publish.model import ReviewRequest, RunChange, publish_error

REQUEST_REF_PREFIX: Final = "refs/cleats/requests/"
"""Prefix of the refs that hold review requests on the remote."""

PUSH_TIMEOUT_SECONDS: Final = 240.0
"""Time limit of one git command; pages are small, but networks can be slow."""


@dataclass(frozen=True, slots=True)
class GitPublisher:
    """A publisher to a remote that the user's own git can push to."""

    clone: Path
    """A repository that has the base commit."""
    env: Mapping[str, str]

    async def commit(self, change: RunChange) -> str:
        git = HardenedGit(self.env, self.clone)
        ref = f"refs/cleats/made/{change.run_id}"
        await self._run_git(git, "", "fast-import", "--quiet", "--force", stdin=_format_fast_import(change, ref))
        sha = (await self._run_git(git, "", "rev-parse", ref)).decode().strip()
        await self._push_ref(git, change, f"refs/heads/{change.branch}", sha)
        return sha

    async def open_request(self, change: RunChange, commit: str) -> ReviewRequest:
        git = HardenedGit(self.env, self.clone)
        tag = _format_tag(change, commit)
        tag_id = await self._run_git(git, "", "hash-object", "-t", "tag", "-w", "--stdin", stdin=tag)
        await self._push_ref(git, change, REQUEST_REF_PREFIX + change.branch, tag_id.decode().strip())
        return ReviewRequest(f"{redact_url(change.repo_url)}#{change.branch}")

    async def _push_ref(self, git: HardenedGit, change: RunChange, ref: str, sha: str) -> None:
        """Point a remote ref to an object; a ref that somebody else created is left alone."""
        url = change.repo_url
        listing = await self._run_git(git, url, "ls-remote", "--", url, ref, f"{ref}^{{}}")
        lines = [line.partition("\t") for line in listing.decode().splitlines()]
        remote_refs = {name: object_id for object_id, _, name in lines}
        current = remote_refs.get(ref, "")
        if current == sha:
            return
        if current and remote_refs.get(f"{ref}^{{}}", current) not in change.earlier:
            raise publish_error(
                f"{ref} already exists, with another commit.",
                hint="Delete it if it is not needed, then open the pull request again.",
                ref=ref,
                found=current,
            )
        options = ("--quiet", "--no-verify", f"--force-with-lease={ref}:{current}")
        await self._run_git(git, url, "push", *options, "--", url, f"{sha}:{ref}")

    async def _run_git(self, git: HardenedGit, url: str, *args: str, stdin: bytes | None = None) -> bytes:
        try:
            return await git.run(url, *args, stdin=stdin, seconds=PUSH_TIMEOUT_SECONDS)
        except ToolError as error:
            if error.code is ErrorCode.TOOLCHAIN_MISSING:
                raise
            details = error.details or {}
            is_rejected = details.get("reason") == GitFault.PUSH_REJECTED.reason
            hint = "Change the rules of the remote to accept the branch, then open the pull request again."
            raise publish_error(
                error.message, retryable=error.retryable, hint=hint if is_rejected else "", **details
            ) from error


def _format_fast_import(change: RunChange, ref: str) -> bytes:
    name, address = change.author
    signature = f"{name} <{address}> {change.moment} +0000".encode()
    message = f"{change.message}\n\n{change.body}".strip().encode() + b"\n"
    lines = [
        b"commit " + ref.encode(),
        b"author " + signature,
        b"committer " + signature,
        b"data %d\n%s" % (len(message), message),
        b"from " + change.base_sha.encode(),
    ]
    for file in change.files:
        escaped_path = file.path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        path = f'"{escaped_path}"'.encode()
        if file.content is None:
            lines.append(b"D " + path)
        else:
            lines.append(b"M 100644 inline " + path)
            lines.append(b"data %d\n%s" % (len(file.content), file.content))
    return b"\n".join([*lines, b"", b"done", b""])


def _format_tag(change: RunChange, commit: str) -> bytes:
    name, address = change.author
    head = (
        f"object {commit}\ntype commit\ntag {change.branch.replace('/', '-')}\n"
        f"tagger {name} <{address}> {change.moment} +0000\n\n"
    )
    return f"{head}{change.title}\n\n{change.body.strip()}\n".encode()
