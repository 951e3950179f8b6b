"""One index for three machines: built by a worker, read by two servers, checked locally.

Every answer is checked: the readers must return what the local index returns, and while a new
generation arrives every answer must be completely the old one or completely the new one.
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

from bench.calls.process import BenchmarkError

SEARCH_QUESTIONS: Sequence[Mapping[str, Any]] = (
    {"query": "parse the inventory file", "top": 10},
    {"query": "retry a request that failed", "top": 10, "mode": "code"},
    {"query": "how to write a module", "mode": "prose"},
    {"query": "AnsibleModule", "type": "class"},
    {"query": "open a connection", "calls": "connect", "lang": "python"},
    {"query": "password", "path": "**/plugins/**"},
    {"query": "template", "returns": True, "branchesMin": 3},
)

CHANGED_NAME = "A_NAME_THAT_IS_NEW_HERE"


@dataclass(frozen=True, slots=True)
class SharingResult:
    """The cost of sharing one index."""

    files: int
    build_seconds: float
    bytes: int
    update_seconds: float
    """Seconds from the change of a file until both servers answered with it."""
    answers: int
    """The number of answers checked while the new generation arrived."""


class SearchServer:
    """A server that is queried over stdio."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cleats", "serve", "code"],
            env={**os.environ, **environ, "CLEATS_LOG_LEVEL": "error"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._request_number = 0
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self._send_request("initialize", params)

    def call_tool(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self._send_request("tools/call", {"name": tool, "arguments": arguments})
        body: dict[str, Any] = answer["result"]["structuredContent"]
        return body

    def search_hits(self, question: Mapping[str, Any]) -> list[Any] | None:
        """Return the hits of a search in order, or None if there is no index."""
        body = self.call_tool("search", **question)
        if not body["ok"]:
            if body["error"]["code"] == "NO_INDEX":
                return None
            raise BenchmarkError(str(body["error"]))
        result = body["result"]
        return [
            (mode, hit["file"], hit["startLine"], hit["name"], hit["score"])
            for mode in ("code", "prose")
            for hit in result[mode]
        ]

    def _send_request(self, method: str, params: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._request_number += 1
        message = {"jsonrpc": "2.0", "id": self._request_number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._request_number:
                return answer
        raise BenchmarkError("a server is gone")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def measure_sharing(corpus: Path, database: str = "") -> SharingResult:
    """Share the index of a repository, change a file, and follow the readers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-share-")))
        project = folder / "project"
        shutil.copytree(corpus, project, symlinks=True)
        shared_environ = {"CLEATS_INDEX_URL": str(folder / "shared"), "CLEATS_INDEX_NAME": "bench"}
        if database:
            shared_environ["CLEATS_DATABASE_URL"] = database
        start_time = time.monotonic()
        stack.enter_context(_run_worker(folder, project, shared_environ))
        readers = [_start_reader(stack, folder / name, shared_environ) for name in ("left", "right")]
        _wait_until(lambda: all(item.search_hits(SEARCH_QUESTIONS[0]) is not None for item in readers))
        build_seconds = time.monotonic() - start_time
        embedded = _start_server(stack, folder / "alone", {"CLEATS_PROJECT_DIR": str(project)})
        files = embedded.call_tool("build_index")["result"]["files"]["total"]
        before = _compare_readers(embedded, readers)
        seconds, answers = _follow_change(project, embedded, readers, before)
        stored_bytes = sum(item.stat().st_size for item in (folder / "shared").rglob("*") if item.is_file())
        return SharingResult(files, build_seconds, stored_bytes, seconds, answers)


def _compare_readers(embedded: SearchServer, readers: Sequence[SearchServer]) -> list[Any]:
    expected_hits = [embedded.search_hits(question) for question in SEARCH_QUESTIONS]
    for reader in readers:
        for question, hits in zip(SEARCH_QUESTIONS, expected_hits, strict=True):
            if reader.search_hits(question) != hits:
                raise BenchmarkError(f"a reader answers {question} otherwise")
    return expected_hits


def _follow_change(
    project: Path, embedded: SearchServer, readers: Sequence[SearchServer], before: list[Any]
) -> tuple[float, int]:
    """Change a file and check every answer until both readers have the new generation."""
    changed_file = project / "changed_for_the_bench.py"
    changed_file.write_text(f"def {CHANGED_NAME}():\n    return 'inventory'\n", encoding="utf-8")
    start_time = time.monotonic()
    observed_answers: list[tuple[int, Any]] = []
    waiting_readers = dict(enumerate(readers))
    while waiting_readers:
        for number, reader in list(waiting_readers.items()):
            turn = len(observed_answers) % len(SEARCH_QUESTIONS)
            observed_answers.append((turn, reader.search_hits(SEARCH_QUESTIONS[turn])))
            change_hits = reader.search_hits({"query": CHANGED_NAME, "top": 3}) or []
            if any(name == CHANGED_NAME for _, _, _, name, _ in change_hits):
                del waiting_readers[number]
    seconds = time.monotonic() - start_time
    embedded.call_tool("build_index", incremental=True)
    after = _compare_readers(embedded, readers)
    for turn, hits in observed_answers:
        if hits not in (before[turn], after[turn]):
            raise BenchmarkError(f"an answer to {SEARCH_QUESTIONS[turn]} is neither the old one nor the new")
    return seconds, len(observed_answers)


def _start_reader(stack: ExitStack, folder: Path, shared_environ: Mapping[str, str]) -> SearchServer:
    (folder / "project").mkdir(parents=True)
    return _start_server(stack, folder, {**shared_environ, "CLEATS_PROJECT_DIR": str(folder / "project")})


def _start_server(stack: ExitStack, folder: Path, environ: Mapping[str, str]) -> SearchServer:
    folder.mkdir(parents=True, exist_ok=True)
    server = SearchServer({**environ, **_build_folder_environ(folder)})
    stack.callback(server.close)
    return server


@contextmanager
def _run_worker(folder: Path, project: Path, shared_environ: Mapping[str, str]) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "cleats", "worker", "--repo", str(project)],
        env={**os.environ, **shared_environ, **_build_folder_environ(folder / "maker"), "CLEATS_LOG_LEVEL": "error"},
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def _build_folder_environ(folder: Path) -> dict[str, str]:
    return {
        "CLEATS_CACHE_DIR": str(folder / "cache"),
        "CLEATS_DATA_DIR": str(folder / "data"),
        "CLEATS_TELEMETRY": "off",
    }


def _wait_until(condition: Any, limit: float = 1800.0) -> None:
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise BenchmarkError("the readers never got an index")
        time.sleep(0.2)
