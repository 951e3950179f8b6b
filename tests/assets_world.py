"""Schemas and examples of a test, and real servers over them, on either wire."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.peer import ROOT, Peer, started

Wire = Literal["rpc", "mcp"]
WIRES: tuple[Wire, ...] = ("rpc", "mcp")

SHOWCASE = ROOT / "examples" / "assets"
"""The set that the documentation uses."""


def serve(wire: Wire, *toolsets: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "cleats", "serve", *(toolsets or ("assets",)), "--wire", wire)


class Client:
    """Calls tools and gives their payloads, whatever carries them."""

    def __init__(self, peer: Peer, wire: Wire) -> None:
        self.peer = peer
        self.wire = wire
        self._id = 0

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self._id += 1
        if self.wire == "rpc":
            self.peer.request(self._id, tool, arguments)
            payload: dict[str, Any] = self.peer.answer(self._id)["result"]
            return payload
        self.peer.call(self._id, tool, **arguments)
        result = self.peer.answer(self._id)["result"]
        (item,) = result["content"]
        assert item == {"type": "text", "text": compact(result["structuredContent"])}
        assert result["isError"] is (not result["structuredContent"]["ok"])
        return dict(result["structuredContent"])


@contextmanager
def client(wire: Wire, home: Path, *toolsets: str, **environ: str) -> Iterator[Client]:
    ready = {"MCP_READY_FILE": str(home / "ready"), **environ}
    with started(*serve(wire, *toolsets), home=home, ready=wire == "mcp", **ready) as peer:
        yield Client(peer, wire)


@dataclass
class World:
    """A folder of schemas and one of examples."""

    folder: Path

    @property
    def schemas(self) -> Path:
        return self.folder / "schemas"

    @property
    def examples(self) -> Path:
        return self.folder / "examples"

    @property
    def environ(self) -> dict[str, str]:
        for folder in (self.schemas, self.examples):
            folder.mkdir(parents=True, exist_ok=True)
        return {"SYN_SCHEMAS_DIR": str(self.schemas), "SYN_EXAMPLES_DIR": str(self.examples)}

    def schema(self, name: str, document: object) -> Path:
        return write(self.schemas / name, document)

    def example(self, path: str, document: object) -> Path:
        return write(self.examples / path, document)


def write(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def failed(*errors: tuple[str, str]) -> Mapping[str, Any]:
    return {
        "ok": False,
        "reason": "validation_failed",
        "errors": [{"path": path, "msg": message} for path, message in errors],
    }
