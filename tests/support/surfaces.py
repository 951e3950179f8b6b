"""The same tools on every surface, with each answer normalized for comparison.

Anything that a surface adds according to its spec (an envelope, a protocol error, a flat error next
to the tool's own) is removed again; the rest must be equal.
"""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Failed
from cleats.contract.payload import FLAT, LAUNCH, AnswerMeta, Payload
from cleats.transports.legacy import LIFTED_DETAILS
from tests.support.http_client import CLEATS_COMMAND, WebServer, run_web_server
from tests.support.mcp_client import ServerPeer, start_legacy_server, start_server
from tests.support.shell import Shell

FLAT_ERROR_KEYS = {"message", "code", "hint", "details", *LIFTED_DETAILS}
"""The keys that spec a adds to the payload of a flat tool."""


@dataclass(frozen=True)
class SurfaceAnswer:
    """An answer in the form that all surfaces share: a hint is part of the message, and only there."""

    ok: bool
    payload: Any

    def __post_init__(self) -> None:
        error = self.payload.get("error", self.payload) if not self.ok else {}
        if isinstance(error.get("details"), dict):
            hint = error["details"].pop("hint", "")
            if not error["message"].endswith(hint):
                error["message"] = ToolError(ErrorCode.INTERNAL, error["message"], hint=hint).explanation


class SurfaceClient(ABC):
    """A client of one surface."""

    @abstractmethod
    def call(self, tool: str, payload: Payload, arguments: Mapping[str, Any]) -> SurfaceAnswer:
        """Call a tool and return its normalized answer."""


def rebuild_failure(payload: Payload, error: Mapping[str, Any]) -> SurfaceAnswer:
    """Rebuild the payload of a tool for an error that a surface reported in its own format."""
    details, retryable = error.get("details"), None
    if isinstance(details, Mapping):
        retryable = details.get("retryable")
        details = {name: value for name, value in details.items() if name not in {"retryable", "hint"}}
    tool_error = ToolError(
        ErrorCode[error["code"]],
        error["message"],
        hint=error.get("hint", ""),
        retryable=retryable,
        details=details or None,
    )
    body = payload.render_outcome(Failed(tool_error), AnswerMeta()).body
    assert body is not None
    return SurfaceAnswer(False, _remove_meta(body))


def _remove_meta(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "_meta"}


def _unwrap_payload(ok: bool, body: Mapping[str, Any]) -> SurfaceAnswer:
    """Return the payload inside an envelope, or the payload itself."""
    payload = _remove_meta(body)
    return SurfaceAnswer(ok, payload["result"] if ok and "_meta" in body else payload)


class McpSurfaceClient(SurfaceClient):
    def __init__(self, peer: ServerPeer) -> None:
        self.peer = peer
        self._request_number = 0

    def call(self, tool: str, payload: Payload, arguments: Mapping[str, Any]) -> SurfaceAnswer:
        self._request_number += 1
        self.peer.send_request(self._request_number, "tools/call", {"name": tool, "arguments": dict(arguments)})
        return self._normalize_answer(payload, self.peer.wait_for_answer(self._request_number))

    def _normalize_answer(self, payload: Payload, answer: Mapping[str, Any]) -> SurfaceAnswer:
        if "error" in answer:
            error = answer["error"]
            return rebuild_failure(payload, {"message": error["message"], **error["data"]})
        result = answer["result"]
        if "structuredContent" in result:
            return _unwrap_payload(not result["isError"], result["structuredContent"])
        return SurfaceAnswer(True, {"content": result["content"]})


class LegacySurfaceClient(McpSurfaceClient):
    def _normalize_answer(self, payload: Payload, answer: Mapping[str, Any]) -> SurfaceAnswer:
        result = answer["result"]
        if payload.name == "content" and not result.get("isError"):
            return SurfaceAnswer(True, {"content": result["content"]})
        [item] = result["content"]
        body = json.loads(item["text"])
        if not result.get("isError"):
            return SurfaceAnswer(True, body)
        if payload in (FLAT, LAUNCH):
            return SurfaceAnswer(False, {k: v for k, v in body.items() if k not in FLAT_ERROR_KEYS})
        return rebuild_failure(payload, body)


class RpcSurfaceClient(SurfaceClient):
    def __init__(self, peer: ServerPeer) -> None:
        self.peer = peer
        self._request_number = 0

    def call(self, tool: str, payload: Payload, arguments: Mapping[str, Any]) -> SurfaceAnswer:
        self._request_number += 1
        self.peer.send_request(self._request_number, tool, dict(arguments))
        body = self.peer.wait_for_answer(self._request_number)["result"]
        if payload.name == "content":
            answer_payload = {"content": body["content"]} if body["ok"] else body["error"]
            return SurfaceAnswer(body["ok"], answer_payload)
        return _unwrap_payload(body["ok"], body)


class HttpSurfaceClient(SurfaceClient):
    def __init__(self, web: WebServer) -> None:
        self.web = web

    def call(self, tool: str, payload: Payload, arguments: Mapping[str, Any]) -> SurfaceAnswer:
        reply = self.web.post(f"/tools/{tool}", dict(arguments))
        if reply.status != 200:
            return _unwrap_http_failure(payload, reply.error)
        result = reply.result
        return SurfaceAnswer(result["ok"] if payload is FLAT else True, result)


def _unwrap_http_failure(payload: Payload, error: Mapping[str, Any]) -> SurfaceAnswer:
    """Return the payload of a tool, whose own fields are among the details of the envelope's error."""
    if payload not in (FLAT, LAUNCH):
        return rebuild_failure(payload, error)
    facts = {name: value for name, value in error["details"].items() if name != "hint"}
    retryable = facts.pop("retryable", False)
    if payload is FLAT:
        return SurfaceAnswer(False, {"ok": False, **facts})
    run = {"run_id": facts.pop("run_id")} if "run_id" in facts else {}
    code = "INVALID_INPUT" if error["code"] == "INVALID_REQUEST" else error["code"]
    own_error = {"code": code, "message": error["message"], "retryable": retryable, "details": facts}
    return SurfaceAnswer(False, {"ok": False, **run, "error": own_error})


class CliSurfaceClient(SurfaceClient):
    def __init__(self, shell: Shell, environ: Mapping[str, str]) -> None:
        self.shell = shell
        self.environ = environ

    def call(self, tool: str, payload: Payload, arguments: Mapping[str, Any]) -> SurfaceAnswer:
        completed = self.shell.run("call", tool, json.dumps(arguments), "--json", **self.environ)
        ok = completed.returncode == 0
        body = json.loads(completed.stdout)
        return SurfaceAnswer(ok, body) if payload.name == "content" else _unwrap_payload(ok, body)


@contextmanager
def open_all_surfaces(home: Path, **environ: str) -> Iterator[dict[str, SurfaceClient]]:
    """Open all surfaces over the real toolsets, in one home."""
    serve = (sys.executable, "-m", "cleats", "serve")
    server_environ = {"MCP_READY_FILE": str(home / "ready"), **environ}
    with ExitStack() as stack:
        enter = stack.enter_context
        mcp = enter(start_server(*serve, home=home, ready=True, **server_environ))
        rpc = enter(start_server(*serve, "--wire", "rpc", home=home, ready=False, **server_environ))
        legacy_command = (*serve, "--wire", "legacy")
        legacy_peer = enter(start_legacy_server(*legacy_command, home=home, ready=True, **server_environ))
        web = enter(run_web_server(*CLEATS_COMMAND, home=home, **environ))
        yield {
            "mcp": McpSurfaceClient(mcp),
            "rpc": RpcSurfaceClient(rpc),
            "legacy": LegacySurfaceClient(legacy_peer),
            "http": HttpSurfaceClient(web),
            "cli": CliSurfaceClient(Shell(home), environ),
        }
