"""Publishing over HTTP: through a commit service, or through the GitHub REST API.

Requests have a deadline, retries and explicit errors. On GitHub, objects are content-addressed, as
everywhere in git: equal blobs, trees and commits get equal ids on every attempt. Only a branch and a
pull request could be duplicated, so both are looked up before they are created, and again when their
creation is rejected.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

import msgspec

from cleats.contract.errors import ToolError
from cleats.system.http_client import JSON_CONTENT_TYPE, HttpClient, HttpReply, RequestFailedError, RetryPolicy
from cleats.toolsets.launch.publish.model import ChangedFile, ReviewRequest, RunChange, publish_error
from cleats.toolsets.launch.runs.job import SECRET_PLACEHOLDER

ATTEMPT_TIMEOUT_SECONDS: Final = 60.0
"""Seconds for one attempt."""

TRANSIENT_STATUSES: Final = frozenset({502, 503, 504})
"""Statuses of a failure that may be over in a moment; the request is retried at once."""

RETRIES: Final = RetryPolicy(4, 0.5, TRANSIENT_STATUSES, obeys_retry_after=False, retries_truncated=True)

RETRYABLE_STATUSES: Final = TRANSIENT_STATUSES | {429, 500}
"""Statuses after which the caller may retry later."""

MAX_REPLY_BYTES: Final = 4 << 20
"""Bytes of a reply that are read."""


@dataclass(slots=True, kw_only=True)
class ServiceClient(HttpClient):
    """A client of a JSON service at one address."""

    name: str
    headers: Mapping[str, str] = field(default_factory=lambda: {"accept": JSON_CONTENT_TYPE})
    timeout: float = ATTEMPT_TIMEOUT_SECONDS
    max_bytes: int = MAX_REPLY_BYTES
    retries: RetryPolicy = RETRIES

    async def request(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> HttpReply:
        """Send one request and retry it while the service is unavailable.

        Every request here is safe to repeat: those that change something carry a key or name what
        they create.

        Raises:
            ToolError: COMMIT_SERVICE_ERROR, the service cannot be reached.
        """
        content = None if body is None else msgspec.json.encode(body)
        try:
            reply = await self.send(method, path, content, headers)
            failure = "the answer is too large" if reply.is_truncated else ""
        except RequestFailedError as error:
            failure = str(error)
        if failure:
            raise publish_error(
                f"{self.name} cannot be reached ({failure}).",
                retryable=True,
                hint="Retry when it is available again; nothing is published twice.",
                attempts=self.retries.tries,
            )
        return reply

    def error_from_reply(self, reply: HttpReply, action: str) -> Exception:
        """Return the error for an unexpected reply."""
        body = reply.parse_json()
        reply_fields = body if isinstance(body, Mapping) else {}
        details: dict[str, Any] = {"status": reply.status}
        if code := self._quote_reply_text(reply_fields.get("code")):
            details["service_code"] = code
        if reply.retry_after is not None:
            details["retry_after_s"] = reply.retry_after
        explanation = self._quote_reply_text(reply_fields.get("message")) or "no explanation"
        return publish_error(
            f"{self.name} refused {action}: {reply.status}, {explanation}",
            retryable=reply.status in RETRYABLE_STATUSES,
            **details,
        )

    def require_body(self, reply: HttpReply, label: str) -> Any:
        """Return the body of a reply.

        Raises:
            ToolError: COMMIT_SERVICE_ERROR, the service refused the request.
        """
        body = reply.parse_json()
        if not reply.ok or body is None:
            raise self.error_from_reply(reply, label)
        return body

    def require_text(self, body: Any, label: str, *names: str) -> str:
        """Return a text field of a reply, which may come from a proxy in between.

        Raises:
            ToolError: COMMIT_SERVICE_ERROR, retryable: a repeated request finds out what was done.
        """
        for name in names:
            body = body.get(name) if isinstance(body, Mapping) else None
        if not isinstance(body, str) or not body:
            raise self.missing_field_error(label, ".".join(names))
        return body

    def missing_field_error(self, label: str, name: str) -> ToolError:
        return publish_error(f"{self.name} answered {label} without {name}.", retryable=True)

    def _quote_reply_text(self, value: Any) -> str:
        """Return a text of the reply, shortened; it may hold anything, even the access token."""
        if not isinstance(value, str):
            return ""
        # Redact before shortening: a token cut in half would no longer be recognised.
        redacted = value.replace(self.token, SECRET_PLACEHOLDER) if self.token else value
        return " ".join(redacted.split())[:300]


SERVICE_SCHEMA_VERSION: Final = "1.0"


@dataclass(frozen=True, slots=True)
class CommitServicePublisher:
    """A publisher to the service behind `/v1`, which checks paths and encodings again."""

    service: ServiceClient

    async def commit(self, change: RunChange) -> str:
        body = {
            **self._build_common_fields(change, "commit"),
            "base_ref": change.base_sha,
            "allowed_paths": list(change.allowed_paths),
            "commit_message": change.message,
            "commit_body": change.body,
            "patch_bundle": change.bundle,
            "require_clean_base": True,
        }
        reply_body = await self._send("/v1/commit", body, "the commit")
        return self.service.require_text(reply_body, "the commit", "commit_sha")

    async def open_request(self, change: RunChange, commit: str) -> ReviewRequest:
        body = {
            **self._build_common_fields(change, f"open_pr {commit}"),
            "base_ref": change.base_sha,
            "pr_title": change.title,
            "pr_body": change.body,
            "draft": change.draft,
        }
        reply_body = await self._send("/v1/open_pr", body, "the request")
        url = self.service.require_text(reply_body, "the request", "pr_url")
        number = reply_body.get("pr_number")
        return ReviewRequest(url, number if isinstance(number, int) and not isinstance(number, bool) else None)

    def _build_common_fields(self, change: RunChange, action: str) -> dict[str, Any]:
        return {
            "schema_version": SERVICE_SCHEMA_VERSION,
            "run_id": change.run_id,
            "idempotency_key": change.idempotency_key(action),
            "repo_url": change.repo_url,
            "branch_name": change.branch,
        }

    async def _send(self, path: str, body: dict[str, Any], label: str) -> Any:
        headers = {"idempotency-key": body["idempotency_key"]}
        async with self.service as service:
            reply = await service.request("POST", path, body, headers=headers)
        if not reply.ok:
            raise service.error_from_reply(reply, label)
        return reply.parse_json()


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
                f"The branch {branch} already exists, with another commit.",
                hint="Delete it if it is not needed, then open the pull request again.",
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
        raise publish_error("The site repository is not hosted on a known service; publish with git instead.")
    return f"/repos/{match[1]}/{match[2]}"


def _format_signature(change: RunChange) -> dict[str, str]:
    name, address = change.author
    date = datetime.fromtimestamp(change.moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"name": name, "email": address, "date": date}
