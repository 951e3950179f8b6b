"""Publishing through the commit service: two requests, each with a key that makes it one."""

from dataclasses import dataclass
from typing import Any, Final

from cleats.toolsets.launch.publish.exchange import Reply, Service
from cleats.toolsets.launch.publish.port import Change, Requested, refused

VERSION: Final = "1.0"


@dataclass(frozen=True, slots=True)
class CommitService:
    """The service behind `/v1`. It checks paths and encodings once more on its side."""

    service: Service

    async def commit(self, change: Change) -> str:
        body = {
            **self._common(change, "commit"),
            "base_ref": change.base_sha,
            "allowed_paths": list(change.allowed_paths),
            "commit_message": change.message,
            "commit_body": change.body,
            "patch_bundle": change.bundle,
            "require_clean_base": True,
        }
        reply = await self._ask("/v1/commit", body)
        if not reply.ok:
            raise self.service.refusal(reply, "the commit")
        return _text(reply.body, "commit_sha", "the commit")

    async def request(self, change: Change, commit: str) -> Requested:
        body = {
            **self._common(change, f"open_pr {commit}"),
            "base_ref": change.base_sha,
            "pr_title": change.title,
            "pr_body": change.body,
            "draft": change.draft,
        }
        reply = await self._ask("/v1/open_pr", body)
        if not reply.ok:
            raise self.service.refusal(reply, "the request")
        number = reply.body.get("pr_number") if isinstance(reply.body, dict) else None
        return Requested(
            _text(reply.body, "pr_url", "the request"),
            number if isinstance(number, int) and not isinstance(number, bool) else None,
        )

    def _common(self, change: Change, what: str) -> dict[str, Any]:
        return {
            "schema_version": VERSION,
            "run_id": change.run_id,
            "idempotency_key": change.key(what),
            "repo_url": change.repo_url,
            "branch_name": change.branch,
        }

    async def _ask(self, path: str, body: dict[str, Any]) -> Reply:
        key = {"idempotency-key": body["idempotency_key"]}
        async with self.service as service:
            return await service.ask("POST", path, body, headers=key)


def _text(body: Any, name: str, doing: str) -> str:
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(value, str) or not value:
        # It may well have done it; asking again with the same key is how to find out.
        raise refused(f"The commit service answered {doing} without {name}.", retryable=True)
    return value
