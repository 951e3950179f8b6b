"""One index for three machines: built by a worker, read by two servers, beside the embedded one.

Every answer is checked: the readers must say what the embedded index says, and while a new
generation arrives every answer is the old one or the new one, whole.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.calls.process import Broken

QUESTIONS: Sequence[Mapping[str, Any]] = (
    {"query": "parse the inventory file", "top": 10},
    {"query": "retry a request that failed", "top": 10, "mode": "code"},
    {"query": "how to write a module", "mode": "prose"},
    {"query": "AnsibleModule", "type": "class"},
    {"query": "open a connection", "calls": "connect", "lang": "python"},
    {"query": "password", "path": "**/plugins/**"},
    {"query": "template", "returns": True, "branchesMin": 3},
)

CHANGE = "A_NAME_THAT_IS_NEW_HERE"


@dataclass(frozen=True, slots=True)
class Shared:
    """What sharing one index cost."""

    files: int
    build_seconds: float
    bytes: int
    update_seconds: float
    """From the change of a file until both servers answered with it."""
    answers: int
    """Those that were checked while the new generation arrived."""


class Server:
    """A server that is asked over stdio."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cleats", "serve", "code"],
            env={**os.environ, **environ, "CLEATS_LOG_LEVEL": "error"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._number = 0
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self._ask("initialize", params)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self._ask("tools/call", {"name": tool, "arguments": arguments})
        body: dict[str, Any] = answer["result"]["structuredContent"]
        return body

    def hits(self, question: Mapping[str, Any]) -> list[Any] | None:
        """Where a search leads, in order; None without an index."""
        body = self.call("search", **question)
        if not body["ok"]:
            if body["error"]["code"] == "NO_INDEX":
                return None
            raise Broken(str(body["error"]))
        found = body["result"]
        return [
            (mode, hit["file"], hit["startLine"], hit["name"], hit["score"])
            for mode in ("code", "prose")
            for hit in found[mode]
        ]

    def _ask(self, method: str, params: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._number:
                return answer
        raise Broken("a server is gone")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def shared(corpus: Path, database: str = "") -> Shared:
    """Share the index of a repository, change a file, and watch the readers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-share-")))
        project = folder / "project"
        shutil.copytree(corpus, project, symlinks=True)
        common = {"CLEATS_INDEX_URL": str(folder / "shared"), "CLEATS_INDEX_NAME": "bench"}
        if database:
            common["CLEATS_DATABASE_URL"] = database
        begun = time.monotonic()
        stack.enter_context(_worker(folder, project, common))
        readers = [_reader(stack, folder / name, common) for name in ("left", "right")]
        _until(lambda: all(each.hits(QUESTIONS[0]) is not None for each in readers))
        built = time.monotonic() - begun
        embedded = _server(stack, folder / "alone", {"CLEATS_PROJECT_DIR": str(project)})
        files = embedded.call("build_index")["result"]["files"]["total"]
        before = _compared(embedded, readers)
        seconds, answers = _changed(project, embedded, readers, before)
        stored = sum(
            each.stat().st_size for each in (folder / "shared").rglob("*") if each.is_file()
        )
        return Shared(files, built, stored, seconds, answers)


def _compared(embedded: Server, readers: Sequence[Server]) -> list[Any]:
    wanted = [embedded.hits(question) for question in QUESTIONS]
    for reader in readers:
        for question, hits in zip(QUESTIONS, wanted, strict=True):
            if reader.hits(question) != hits:
                raise Broken(f"a reader answers {question} otherwise")
    return wanted


def _changed(
    project: Path, embedded: Server, readers: Sequence[Server], before: list[Any]
) -> tuple[float, int]:
    """Change a file; follow every answer until both readers have the new one."""
    place = project / "changed_for_the_bench.py"
    place.write_text(f"def {CHANGE}():\n    return 'inventory'\n", encoding="utf-8")
    begun = time.monotonic()
    seen: list[tuple[int, Any]] = []
    waiting = dict(enumerate(readers))
    while waiting:
        for number, reader in list(waiting.items()):
            turn = len(seen) % len(QUESTIONS)
            seen.append((turn, reader.hits(QUESTIONS[turn])))
            found = reader.hits({"query": CHANGE, "top": 3}) or []
            if any(name == CHANGE for _, _, _, name, _ in found):
                del waiting[number]
    seconds = time.monotonic() - begun
    embedded.call("build_index", incremental=True)
    after = _compared(embedded, readers)
    for turn, hits in seen:
        if hits not in (before[turn], after[turn]):
            raise Broken(f"an answer to {QUESTIONS[turn]} is neither the old one nor the new")
    return seconds, len(seen)


def _reader(stack: ExitStack, folder: Path, common: Mapping[str, str]) -> Server:
    (folder / "project").mkdir(parents=True)
    return _server(stack, folder, {**common, "CLEATS_PROJECT_DIR": str(folder / "project")})


def _server(stack: ExitStack, folder: Path, environ: Mapping[str, str]) -> Server:
    folder.mkdir(parents=True, exist_ok=True)
    server = Server({**environ, **_places(folder)})
    stack.callback(server.close)
    return server


@contextmanager
def _worker(folder: Path, project: Path, common: Mapping[str, str]) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "cleats", "worker", "--repo", str(project)],
        env={**os.environ, **common, **_places(folder / "maker"), "CLEATS_LOG_LEVEL": "error"},
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def _places(folder: Path) -> dict[str, str]:
    return {
        "CLEATS_CACHE_DIR": str(folder / "cache"),
        "CLEATS_DATA_DIR": str(folder / "data"),
        "CLEATS_TELEMETRY": "off",
    }


def _until(condition: Any, limit: float = 1800.0) -> None:
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise Broken("the readers never got an index")
        time.sleep(0.2)
