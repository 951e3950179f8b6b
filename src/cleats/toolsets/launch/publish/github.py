"""Publishing through the GitHub REST API.

Objects are content-addressed there as everywhere in git: the same blobs, tree and commit have the
same ids however often they are sent. Only a branch and a request can be doubled, so both are
looked for before they are made, and once more when making them is refused.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.publish.exchange import Reply, Service
from cleats.toolsets.launch.publish.port import Change, Requested, refused

HEADERS: Final = {
    "accept": "application/vnd.github+json",
    "x-github-api-version": "2022-11-28",
}

_SLUG = re.compile(r"^(?:https://|ssh://git@|git@)[^/:]+[/:]([\w.-]+)/([\w.-]+?)(?:\.git)?/?$")


@dataclass(frozen=True, slots=True)
class GitHub:
    """One forge that speaks this API."""

    service: Service

    async def commit(self, change: Change) -> str:
        async with self.service as service:
            repo = _repository(change.repo_url)
            base = await self._get(service, f"{repo}/git/commits/{change.base_sha}", "the base")
            entries = [await self._entry(service, repo, file) for file in change.files]
            made = {"base_tree": self._text(base, "the base", "tree", "sha"), "tree": entries}
            tree = await self._post(service, f"{repo}/git/trees", made, "the tree")
            who = _signature(change)
            commit = await self._post(
                service,
                f"{repo}/git/commits",
                {
                    "message": f"{change.message}\n\n{change.body}".strip() + "\n",
                    "tree": self._text(tree, "the tree", "sha"),
                    "parents": [change.base_sha],
                    "author": who,
                    "committer": who,
                },
                "the commit",
            )
            sha = self._text(commit, "the commit", "sha")
            await self._branch(service, repo, change, sha)
            return sha

    async def request(self, change: Change, commit: str) -> Requested:
        async with self.service as service:
            repo = _repository(change.repo_url)
            if (found := await self._found(service, repo, change)) is not None:
                return found
            base = change.base_branch
            if not base:
                what = "the repository"
                base = self._text(await self._get(service, repo, what), what, "default_branch")
            body = {
                "title": change.title,
                "body": f"{change.body}\n\nCommit: {commit}\n",
                "head": change.branch,
                "base": base,
                "draft": change.draft,
            }
            reply = await service.ask("POST", f"{repo}/pulls", body)
            if reply.status == 422:  # made, perhaps, by a request whose answer we did not get
                found = await self._found(service, repo, change)
            return found or self._requested(self._good(reply, "the request"))

    async def _entry(self, service: Service, repo: str, file: Any) -> Mapping[str, Any]:
        entry = {"path": file.path, "mode": "100644", "type": "blob"}
        if file.content is None:
            return {**entry, "sha": None}
        sent = {"content": b64encode(file.content).decode(), "encoding": "base64"}
        blob = await self._post(service, f"{repo}/git/blobs", sent, "a file")
        return {**entry, "sha": self._text(blob, "a file", "sha")}

    async def _branch(self, service: Service, repo: str, change: Change, sha: str) -> None:
        branch = change.branch
        made = await service.ask(
            "POST", f"{repo}/git/refs", {"ref": f"refs/heads/{branch}", "sha": sha}
        )
        if made.status != 422:
            self._good(made, "the branch")
            return
        there = await self._get(service, f"{repo}/git/ref/heads/{quote(branch)}", "the branch")
        found = self._text(there, "the branch", "object", "sha")
        if found in change.earlier:
            moved = {"sha": sha, "force": True}
            path = f"{repo}/git/refs/heads/{quote(branch)}"
            self._good(await service.ask("PATCH", path, moved), "the branch")
        elif found != sha:
            raise refused(
                f"The branch {branch} is there already, with another commit.",
                hint="Delete it if nobody needs it, then open the request again.",
                status=made.status,
            )

    async def _found(self, service: Service, repo: str, change: Change) -> Requested | None:
        owner = repo.split("/")[2]
        query = f"state=all&head={quote(f'{owner}:{change.branch}', safe='')}"
        reply = await service.ask("GET", f"{repo}/pulls?{query}")
        what = "the list of requests"
        body = self._good(reply, what)
        if not isinstance(body, list):
            raise self._odd(what, "requests")
        return self._requested(body[0]) if body else None

    async def _get(self, service: Service, path: str, what: str) -> Any:
        return self._good(await service.ask("GET", path), what)

    async def _post(self, service: Service, path: str, body: Any, what: str) -> Any:
        return self._good(await service.ask("POST", path, body), what)

    def _good(self, reply: Reply, what: str) -> Any:
        if not reply.ok or reply.body is None:
            raise self.service.refusal(reply, what)
        return reply.body

    def _requested(self, body: Any) -> Requested:
        number = body.get("number") if isinstance(body, Mapping) else None
        if not isinstance(number, int):
            raise self._odd("the request", "number")
        return Requested(self._text(body, "the request", "html_url"), number)

    def _text(self, body: Any, what: str, *names: str) -> str:
        """A text in an answer, which may be anybody's: something in between may have answered."""
        for name in names:
            body = body.get(name) if isinstance(body, Mapping) else None
        if not isinstance(body, str) or not body:
            raise self._odd(what, ".".join(names))
        return body

    def _odd(self, what: str, name: str) -> ToolError:
        return refused(f"{self.service.name} answered {what} without {name}.", retryable=True)


def _repository(url: str) -> str:
    found = _SLUG.match(url)
    if found is None:
        raise refused("The site's repository is not one of a forge; publish with git instead.")
    return f"/repos/{found[1]}/{found[2]}"


def _signature(change: Change) -> dict[str, str]:
    name, address = change.author
    date = datetime.fromtimestamp(change.moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"name": name, "email": address, "date": date}
