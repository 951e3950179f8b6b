"""Publishing through the commit service: two requests, each with an idempotency key."""

from dataclasses import dataclass
from typing import Any, Final

from cleats.toolsets.launch.publish.model import ReviewRequest, RunChange, publish_error
from cleats.toolsets.launch.publish.service_client import ServiceClient, ServiceReply

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
        reply = await self._send("/v1/commit", body)
        if not reply.ok:
            raise self.service.error_from_reply(reply, "the commit")
        return _require_text(reply.body, "commit_sha", "the commit")

    async def open_request(self, change: RunChange, commit: str) -> ReviewRequest:
        body = {
            **self._build_common_fields(change, f"open_pr {commit}"),
            "base_ref": change.base_sha,
            "pr_title": change.title,
            "pr_body": change.body,
            "draft": change.draft,
        }
        reply = await self._send("/v1/open_pr", body)
        if not reply.ok:
            raise self.service.error_from_reply(reply, "the request")
        number = reply.body.get("pr_number") if isinstance(reply.body, dict) else None
        return ReviewRequest(
            _require_text(reply.body, "pr_url", "the request"),
            number if isinstance(number, int) and not isinstance(number, bool) else None,
        )

    def _build_common_fields(self, change: RunChange, action: str) -> dict[str, Any]:
        return {
            "schema_version": SERVICE_SCHEMA_VERSION,
            "run_id": change.run_id,
            "idempotency_key": change.idempotency_key(action),
            "repo_url": change.repo_url,
            "branch_name": change.branch,
        }

    async def _send(self, path: str, body: dict[str, Any]) -> ServiceReply:
        headers = {"idempotency-key": body["idempotency_key"]}
        async with self.service as service:
            return await service.send("POST", path, body, headers=headers)


def _require_text(body: Any, name: str, action: str) -> str:
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(value, str) or not value:
        # It may have succeeded; a retry with the same key finds out.
        raise publish_error(f"The commit service answered {action} without {name}.", retryable=True)
    return value
