"""Schemas and examples of a test, and real servers that serve them over either wire."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.support.mcp_client import ServerPeer, start_server
from tests.support.paths import REPOSITORY_ROOT

Wire = Literal["rpc", "mcp"]
ASSET_WIRES: tuple[Wire, ...] = ("rpc", "mcp")

SHOWCASE_FOLDER = REPOSITORY_ROOT / "examples" / "assets"
"""The schemas and examples that the documentation uses."""


def build_serve_command(wire: Wire, *toolsets: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "cleats", "serve", *(toolsets or ("assets",)), "--wire", wire)


class AssetClient:
    """A client that calls tools and returns their payloads, over either wire."""

    def __init__(self, peer: ServerPeer, wire: Wire) -> None:
        self.peer = peer
        self.wire = wire
        self._request_id = 0

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self._request_id += 1
        if self.wire == "rpc":
            self.peer.send_request(self._request_id, tool, arguments)
            payload: dict[str, Any] = self.peer.wait_for_answer(self._request_id)["result"]
            return payload
        self.peer.send_call(self._request_id, tool, **arguments)
        result = self.peer.wait_for_answer(self._request_id)["result"]
        (item,) = result["content"]
        assert item == {"type": "text", "text": encode_compact(result["structuredContent"])}
        assert result["isError"] is (not result["structuredContent"]["ok"])
        return dict(result["structuredContent"])


@contextmanager
def open_asset_client(wire: Wire, home: Path, *toolsets: str, **environ: str) -> Iterator[AssetClient]:
    server_environ = {"MCP_READY_FILE": str(home / "ready"), **environ}
    with start_server(*build_serve_command(wire, *toolsets), home=home, ready=wire == "mcp", **server_environ) as peer:
        yield AssetClient(peer, wire)


@dataclass
class AssetFolders:
    """A folder of schemas and a folder of examples."""

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

    def write_schema(self, name: str, document: object) -> Path:
        return write_document(self.schemas / name, document)

    def write_example(self, path: str, document: object) -> Path:
        return write_document(self.examples / path, document)


def write_document(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def encode_compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def build_failure(*errors: tuple[str, str]) -> Mapping[str, Any]:
    return {
        "ok": False,
        "reason": "validation_failed",
        "errors": [{"path": path, "msg": message} for path, message in errors],
    }
