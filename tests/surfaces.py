"""The same tools over every surface, each answer brought into one form for comparing.

What a surface adds (an envelope, a protocol error, a flat error beside the tool's own) is taken off
again by what its spec says about it; what is left must be equal.
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
from cleats.contract.payload import FLAT, LAUNCH, Meta, Payload
from cleats.transports.legacy.answers import LIFTED
from tests.peer import Peer, legacy, started
from tests.shell import Shell
from tests.web import CLEATS, Web, serving

FLAT_ERROR = {"message", "code", "hint", "details", *LIFTED}
"""What spec a adds to the payload of a flat tool."""


@dataclass(frozen=True)
class Seen:
    """An answer as every surface should tell it."""

    ok: bool
    payload: Any


class Surface(ABC):
    """One way to reach the tools."""

    @abstractmethod
    def call(self, tool: str, payload: Payload, arguments: Mapping[str, Any]) -> Seen:
        """Call a tool and see its answer."""


def failure(
    payload: Payload, error: Mapping[str, Any], arguments: Mapping[str, Any] | None = None
) -> Seen:
    """What a tool's own payload is for an error that a surface told in its own way.

    A launch payload also has the run, which such a surface leaves to whoever named it.
    """
    details = error.get("details")
    asked = (arguments or {}).get("run_id", "")
    known = error["code"] not in {"INVALID_REQUEST", "INVALID_INPUT"}
    meta = Meta(notes={"run_id": asked} if asked and known else {})
    said = ToolError(
        ErrorCode[error["code"]], error["message"], hint=error.get("hint", ""), details=details
    )
    body = payload.seal(Failed(said), meta).body
    assert body is not None
    return Seen(False, _without_meta(body))


def _without_meta(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "_meta"}


def _sealed(ok: bool, body: Mapping[str, Any]) -> Seen:
    """The payload of an envelope, or the payload as it is."""
    rest = _without_meta(body)
    return Seen(ok, rest["result"] if ok and "_meta" in body else rest)


class Mcp(Surface):
    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._number = 0

    def call(self, tool: str, payload: Payload, arguments: Mapping[str, Any]) -> Seen:
        self._number += 1
        self.peer.request(self._number, "tools/call", {"name": tool, "arguments": dict(arguments)})
        return self._seen(payload, self.peer.answer(self._number))

    def _seen(self, payload: Payload, answer: Mapping[str, Any]) -> Seen:
        if "error" in answer:
            error = answer["error"]
            return failure(payload, {"message": error["message"], **error["data"]})
        result = answer["result"]
        if "structuredContent" in result:
            return _sealed(not result["isError"], result["structuredContent"])
        return Seen(True, {"content": result["content"]})


class Legacy(Mcp):
    def _seen(self, payload: Payload, answer: Mapping[str, Any]) -> Seen:
        result = answer["result"]
        if payload.name == "content" and not result.get("isError"):
            return Seen(True, {"content": result["content"]})
        [item] = result["content"]
        body = json.loads(item["text"])
        if not result.get("isError"):
            return Seen(True, body)
        if payload in (FLAT, LAUNCH):
            return Seen(False, {k: v for k, v in body.items() if k not in FLAT_ERROR})
        return failure(payload, body)


class Rpc(Surface):
    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._number = 0

    def call(self, tool: str, payload: Payload, arguments: Mapping[str, Any]) -> Seen:
        self._number += 1
        self.peer.request(self._number, tool, dict(arguments))
        body = self.peer.answer(self._number)["result"]
        if payload.name == "content":
            shown = {"content": body["content"]} if body["ok"] else body["error"]
            return Seen(body["ok"], shown)
        return _sealed(body["ok"], body)


class Http(Surface):
    def __init__(self, web: Web) -> None:
        self.web = web

    def call(self, tool: str, payload: Payload, arguments: Mapping[str, Any]) -> Seen:
        reply = self.web.post(f"/tools/{tool}", dict(arguments))
        if reply.status != 200:
            return failure(payload, reply.error, arguments)
        result = reply.result
        return Seen(result["ok"] if payload is FLAT else True, result)


class Cli(Surface):
    def __init__(self, shell: Shell, environ: Mapping[str, str]) -> None:
        self.shell = shell
        self.environ = environ

    def call(self, tool: str, payload: Payload, arguments: Mapping[str, Any]) -> Seen:
        ended = self.shell.run("call", tool, json.dumps(arguments), "--json", **self.environ)
        ok = ended.returncode == 0
        body = json.loads(ended.stdout)
        return Seen(ok, body) if payload.name == "content" else _sealed(ok, body)


@contextmanager
def every_surface(home: Path, **environ: str) -> Iterator[dict[str, Surface]]:
    """All of them over the real toolsets, in one home."""
    serve = (sys.executable, "-m", "cleats", "serve")
    given = {"MCP_READY_FILE": str(home / "ready"), **environ}
    with ExitStack() as stack:
        enter = stack.enter_context
        mcp = enter(started(*serve, home=home, ready=True, **given))
        rpc = enter(started(*serve, "--wire", "rpc", home=home, ready=False, **given))
        words = (*serve, "--wire", "legacy")
        old = enter(legacy(*words, home=home, ready=True, **given))
        web = enter(serving(*CLEATS, home=home, **environ))
        yield {
            "mcp": Mcp(mcp),
            "rpc": Rpc(rpc),
            "legacy": Legacy(old),
            "http": Http(web),
            "cli": Cli(Shell(home), environ),
        }
