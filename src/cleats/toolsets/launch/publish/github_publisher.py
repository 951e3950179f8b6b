"""Publishing through the GitHub REST API.

Objects are content-addressed, as everywhere in git: equal blobs, trees and commits get equal ids on
every attempt. Only a branch and a pull request could be duplicated, so both are looked up before
they are created, and again when their creation is rejected.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from cleats.toolsets.launch.publish.commit_service import ServiceClient
from cleats.toolsets.launch.publish.model import ChangedFile, ReviewRequest, RunChange, publish_error

GITHUB_HEADERS: Final = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}

_REPOSITORY_URL_PATTERN = re.compile(r"^(?:https://|ssh://git@|git@)[^/:]+[/:]([\w.-]+)/([\w.-]+?)(?:\.git)?/?$")


@dataclass(frozen=True, slots=True)
class GitHubPublisher:
    """A publisher to a forge that offers this API."""

    service: ServiceClient

    async def commit(self, change: RunChange) -> str:
        async with self.service:
            repo = _format_repository_path(change.repo_url)
            base = await self._request("GET", f"{repo}/git/commits/{change.base_sha}", "the base")
            entries = [await self._create_tree_entry(repo, file) for file in change.files]
            tree_body = {"base_tree": self.service.require_text(base, "the base", "tree", "sha"), "tree": entries}
            tree = await self._request("POST", f"{repo}/git/trees", "the tree", tree_body)
            signature = _format_signature(change)
            commit_body = {
                "message": f"{change.message}\n\n{change.body}".strip() + "\n",
                "tree": self.service.require_text(tree, "the tree", "sha"),
                "parents": [change.base_sha],
                "author": signature,
                "committer": signature,
            }
            commit = await self._request("POST", f"{repo}/git/commits", "the commit", commit_body)
            sha = self.service.require_text(commit, "the commit", "sha")
            await self._update_branch(repo, change, sha)
            return sha

    async def open_request(self, change: RunChange, commit: str) -> ReviewRequest:
        async with self.service:
            repo = _format_repository_path(change.repo_url)
            if (existing := await self._find_request(repo, change)) is not None:
                return existing
            base = change.base_branch
            if not base:
                label = "the repository"
                base = self.service.require_text(await self._request("GET", repo, label), label, "default_branch")
            body = {
                "title": change.title,
                "body": f"{change.body}\n\nCommit: {commit}\n",
                "head": change.branch,
                "base": base,
                "draft": change.draft,
            }
            reply = await self.service.request("POST", f"{repo}/pulls", body)
            if reply.status == 422:  # perhaps created by an attempt whose reply was lost
                existing = await self._find_request(repo, change)
            return existing or self._parse_request(self.service.require_body(reply, "the request"))

    async def _create_tree_entry(self, repo: str, file: ChangedFile) -> Mapping[str, Any]:
        entry = {"path": file.path, "mode": "100644", "type": "blob"}
        if file.content is None:
            return {**entry, "sha": None}
        blob_body = {"content": b64encode(file.content).decode(), "encoding": "base64"}
        blob = await self._request("POST", f"{repo}/git/blobs", "a file", blob_body)
        return {**entry, "sha": self.service.require_text(blob, "a file", "sha")}

    async def _update_branch(self, repo: str, change: RunChange, sha: str) -> None:
        branch, label = change.branch, "the branch"
        reply = await self.service.request("POST", f"{repo}/git/refs", {"ref": f"refs/heads/{branch}", "sha": sha})
        if reply.status != 422:
            self.service.require_body(reply, label)
            return
        current = await self._request("GET", f"{repo}/git/ref/heads/{quote(branch)}", label)
        current_sha = self.service.require_text(current, label, "object", "sha")
        if current_sha in change.earlier:
            update = {"sha": sha, "force": True}
            await self._request("PATCH", f"{repo}/git/refs/heads/{quote(branch)}", label, update)
        elif current_sha != sha:
            raise publish_error(
                f"The branch {branch} is there already, with another commit.",
                hint="Delete it if nobody needs it, then open the request again.",
                status=reply.status,
            )

    async def _find_request(self, repo: str, change: RunChange) -> ReviewRequest | None:
        owner, label = repo.split("/")[2], "the list of requests"
        query = f"state=all&head={quote(f'{owner}:{change.branch}', safe='')}"
        body = await self._request("GET", f"{repo}/pulls?{query}", label)
        if not isinstance(body, list):
            raise self.service.missing_field_error(label, "requests")
        return self._parse_request(body[0]) if body else None

    async def _request(self, method: str, path: str, label: str, body: Any = None) -> Any:
        return self.service.require_body(await self.service.request(method, path, body), label)

    def _parse_request(self, body: Any) -> ReviewRequest:
        number = body.get("number") if isinstance(body, Mapping) else None
        if not isinstance(number, int):
            raise self.service.missing_field_error("the request", "number")
        return ReviewRequest(self.service.require_text(body, "the request", "html_url"), number)


def _format_repository_path(url: str) -> str:
    match = _REPOSITORY_URL_PATTERN.match(url)
    if match is None:
        raise publish_error("The site's repository is not one of a forge; publish with git instead.")
    return f"/repos/{match[1]}/{match[2]}"


def _format_signature(change: RunChange) -> dict[str, str]:
    name, address = change.author
    date = datetime.fromtimestamp(change.moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"name": name, "email": address, "date": date}
