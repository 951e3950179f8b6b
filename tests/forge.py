"""Two services to publish to, each over a real bare repository: a forge and a commit service.

They do what their APIs promise and no more, and can be told to misbehave: `lose` answers after the
work is done, as a connection that breaks does, and `fail` answers with a status instead.
"""

import json
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.git_world import Checkout

Answer = tuple[int, Any]


@dataclass
class Forge:
    """A service in front of one bare repository."""

    repo: Checkout
    token: str = "secret-token"
    base: str = ""
    seen: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    lose: list[str] = field(default_factory=list)
    """Ends of paths whose next answer is lost after the work."""
    fail: dict[str, list[int]] = field(default_factory=dict)
    """Statuses for the next requests to a path, before any work."""
    retry_after: str = ""
    pulls: list[dict[str, Any]] = field(default_factory=list)
    replies: dict[tuple[str, str], tuple[Any, Answer]] = field(default_factory=dict)

    def branches(self) -> dict[str, str]:
        lines = self.repo.git("for-each-ref", "--format=%(refname:short) %(objectname)")
        return dict(line.split(" ") for line in lines.splitlines() if line)

    def answer(  # noqa: C901 - one case a route
        self, method: str, path: str, query: dict[str, list[str]], body: Any
    ) -> Answer:
        if path.startswith("/v1/"):
            return self._service(path, body)
        parts = path.split("/")[4:]
        match (method, parts):
            case ("GET", []):
                return 200, {"default_branch": "main"}
            case ("GET", ["git", "commits", sha]):
                return 200, {"sha": sha, "tree": {"sha": self._git("rev-parse", f"{sha}^{{tree}}")}}
            case ("POST", ["git", "blobs"]):
                return 201, {"sha": self._put("blob", b64decode(body["content"]))}
            case ("POST", ["git", "trees"]):
                return 201, {"sha": self._tree(body["base_tree"], body["tree"])}
            case ("POST", ["git", "commits"]):
                return 201, {"sha": self._commit(body)}
            case ("POST", ["git", "refs"]):
                return self._ref(body["ref"], body["sha"])
            case ("GET", ["git", "ref", "heads", *rest]):
                return 200, {"object": {"sha": self.branches()[unquote("/".join(rest))]}}
            case ("PATCH", ["git", "refs", "heads", *rest]):
                self._git("update-ref", f"refs/heads/{unquote('/'.join(rest))}", body["sha"])
                return 200, {"object": {"sha": body["sha"]}}
            case ("GET", ["pulls"]):
                head = query["head"][0].partition(":")[2]
                return 200, [pull for pull in self.pulls if pull["head"] == head]
            case ("POST", ["pulls"]):
                return self._pull(body)
        return 404, {"message": "Not Found"}

    def _git(self, *words: str) -> str:
        return self.repo.git(*words)

    def _put(self, kind: str, content: bytes) -> str:
        scratch = self.repo.root / "scratch"
        scratch.write_bytes(content)
        return self._git("hash-object", "-t", kind, "-w", "--literally", str(scratch))

    def _tree(self, base: str, entries: list[dict[str, Any]]) -> str:
        self._git("read-tree", base)
        for entry in entries:
            if entry["sha"] is None:
                self._git("rm", "--cached", "--quiet", entry["path"])
            else:
                self._git(
                    "update-index", "--add", "--cacheinfo", f"100644,{entry['sha']},{entry['path']}"
                )
        return self._git("write-tree")

    def _commit(self, body: dict[str, Any]) -> str:
        def line(kind: str) -> str:
            who = body[kind]
            moment = int(datetime.fromisoformat(who["date"]).timestamp())
            return f"{kind} {who['name']} <{who['email']}> {moment} +0000\n"

        parents = "".join(f"parent {parent}\n" for parent in body["parents"])
        text = f"tree {body['tree']}\n{parents}{line('author')}{line('committer')}\n"
        return self._put("commit", (text + body["message"]).encode())

    def _ref(self, ref: str, sha: str) -> Answer:
        if ref.removeprefix("refs/heads/") in self.branches():
            return 422, {"message": "Reference already exists"}
        self._git("update-ref", ref, sha)
        return 201, {"ref": ref}

    def _pull(self, body: dict[str, Any]) -> Answer:
        if any(pull["head"] == body["head"] for pull in self.pulls):
            return 422, {"message": "Validation Failed"}
        number = len(self.pulls) + 1
        pull = {**body, "number": number, "html_url": f"https://forge.example/site/pull/{number}"}
        self.pulls.append(pull)
        return 201, pull

    def _service(self, path: str, body: dict[str, Any]) -> Answer:
        key = (path, body["idempotency_key"])
        if key in self.replies:
            before, reply = self.replies[key]
            return (200, reply[1]) if before == body else (400, {"code": "BAD_KEY", "message": ""})
        reply = self._accepted(path, body)
        if reply[0] < 300:
            self.replies[key] = (body, reply)
        return reply

    def _accepted(self, path: str, body: dict[str, Any]) -> Answer:
        if path == "/v1/open_pr":
            return self._pull({"head": body["branch_name"], "title": body["pr_title"]})[0], {
                "pr_url": self.pulls[-1]["html_url"],
                "pr_number": self.pulls[-1]["number"],
            }
        if body["branch_name"] in self.branches():
            return 409, {"code": "BRANCH_EXISTS", "message": "the branch exists"}
        entries = []
        for patch in body["patch_bundle"]["patches"]:
            gone = patch["type"] == "delete_file"
            sha = None if gone else self._put("blob", patch["new_content"].encode())
            entries.append({"path": patch["path"], "sha": sha})
        base = self._git("rev-parse", f"{body['base_ref']}^{{tree}}")
        who = {"name": "Service", "email": "s@example.com", "date": "2026-01-01T00:00:00+00:00"}
        sha = self._commit(
            {
                "tree": self._tree(base, entries),
                "parents": [body["base_ref"]],
                "author": who,
                "committer": who,
                "message": body["commit_message"],
            }
        )
        self._git("update-ref", f"refs/heads/{body['branch_name']}", sha)
        return 200, {"commit_sha": sha, "created_at": "2026-01-01T00:00:00Z"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    forge: Forge
    lock: threading.Lock

    def log_message(self, *_args: Any) -> None:
        pass

    def _any(self) -> None:
        with self.lock:
            self._serve()

    do_GET = do_POST = do_PATCH = _any  # noqa: N815 - the names the library calls

    def _serve(self) -> None:
        forge = self.forge
        url = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.loads(raw) if raw else None
        forge.seen.append((self.command, url.path))
        forge.bodies.append(body)
        forge.tokens.append(self.headers.get("authorization", ""))
        if self.headers.get("authorization") != f"Bearer {forge.token}":
            return self._reply(401, {"code": "AUTH_INVALID_TOKEN", "message": "who are you"})
        waiting = forge.fail.get(url.path.rsplit("/", 1)[-1])
        if waiting:
            return self._reply(waiting.pop(0), {"message": "not now"})
        status, answer = forge.answer(self.command, url.path, parse_qs(url.query), body)
        lost = next((end for end in forge.lose if url.path.endswith(end)), None)
        if lost is not None and self.command == "POST":
            forge.lose.remove(lost)
            self.close_connection = True
            self.connection.close()
            return None
        return self._reply(status, answer)

    def _reply(self, status: int, body: Any) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        if self.forge.retry_after:
            self.send_header("retry-after", self.forge.retry_after)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


@contextmanager
def forge(root: Path, setup: Callable[[Checkout], None] | None = None) -> Iterator[Forge]:
    """A forge over a new bare repository with one commit on main."""
    work = Checkout.new(root / "work")
    work.write("content/docs/_index.md", "---\ntitle: Docs\n---\n")
    work.write("content/docs/old.md", "---\ntitle: Old\n---\n")
    if setup is not None:
        setup(work)
    work.commit()
    work.git("clone", "--quiet", "--bare", ".", str(root / "site.git"))
    made = Forge(Checkout(root / "site.git"))
    handler = type("Handler", (_Handler,), {"forge": made, "lock": threading.Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    made.base = f"http://127.0.0.1:{server.server_port}"
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
