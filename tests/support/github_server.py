"""Two services to publish to, each with a real bare repository: a forge and a commit service.

They do only what their APIs promise, and can be made to misbehave: `lost_answers` drops the answer
after the work is done, as a broken connection does, and `failure_statuses` answers with a status
instead of doing the work.
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

from tests.support.git_repositories import GitCheckout

ForgeAnswer = tuple[int, Any]


@dataclass
class FakeForge:
    """A service in front of one bare repository."""

    repo: GitCheckout
    token: str = "secret-token"
    base: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    lost_answers: list[str] = field(default_factory=list)
    """Suffixes of paths whose next answer is dropped after the work is done."""
    failure_statuses: dict[str, list[int]] = field(default_factory=dict)
    """Statuses for the next requests to a path, sent before any work is done."""
    retry_after: str = ""
    pulls: list[dict[str, Any]] = field(default_factory=list)
    replies: dict[tuple[str, str], tuple[Any, ForgeAnswer]] = field(default_factory=dict)

    def list_branches(self) -> dict[str, str]:
        lines = self.repo.run_git("for-each-ref", "--format=%(refname:short) %(objectname)")
        return dict(line.split(" ") for line in lines.splitlines() if line)

    def answer_request(  # noqa: C901 - one case a route
        self, method: str, path: str, query: dict[str, list[str]], body: Any
    ) -> ForgeAnswer:
        if path.startswith("/v1/"):
            return self._answer_commit_service(path, body)
        parts = path.split("/")[4:]
        match (method, parts):
            case ("GET", []):
                return 200, {"default_branch": "main"}
            case ("GET", ["git", "commits", sha]):
                return 200, {"sha": sha, "tree": {"sha": self._run_git("rev-parse", f"{sha}^{{tree}}")}}
            case ("POST", ["git", "blobs"]):
                return 201, {"sha": self._write_object("blob", b64decode(body["content"]))}
            case ("POST", ["git", "trees"]):
                return 201, {"sha": self._write_tree(body["base_tree"], body["tree"])}
            case ("POST", ["git", "commits"]):
                return 201, {"sha": self._write_commit(body)}
            case ("POST", ["git", "refs"]):
                return self._create_ref(body["ref"], body["sha"])
            case ("GET", ["git", "ref", "heads", *rest]):
                return 200, {"object": {"sha": self.list_branches()[unquote("/".join(rest))]}}
            case ("PATCH", ["git", "refs", "heads", *rest]):
                self._run_git("update-ref", f"refs/heads/{unquote('/'.join(rest))}", body["sha"])
                return 200, {"object": {"sha": body["sha"]}}
            case ("GET", ["pulls"]):
                head = query["head"][0].partition(":")[2]
                return 200, [pull for pull in self.pulls if pull["head"] == head]
            case ("POST", ["pulls"]):
                return self._create_pull(body)
        return 404, {"message": "Not Found"}

    def _run_git(self, *words: str) -> str:
        return self.repo.run_git(*words)

    def _write_object(self, kind: str, content: bytes) -> str:
        scratch = self.repo.root / "scratch"
        scratch.write_bytes(content)
        return self._run_git("hash-object", "-t", kind, "-w", "--literally", str(scratch))

    def _write_tree(self, base: str, entries: list[dict[str, Any]]) -> str:
        self._run_git("read-tree", base)
        for entry in entries:
            if entry["sha"] is None:
                self._run_git("rm", "--cached", "--quiet", entry["path"])
            else:
                self._run_git("update-index", "--add", "--cacheinfo", f"100644,{entry['sha']},{entry['path']}")
        return self._run_git("write-tree")

    def _write_commit(self, body: dict[str, Any]) -> str:
        def signature(kind: str) -> str:
            identity = body[kind]
            timestamp = int(datetime.fromisoformat(identity["date"]).timestamp())
            return f"{kind} {identity['name']} <{identity['email']}> {timestamp} +0000\n"

        parents = "".join(f"parent {parent}\n" for parent in body["parents"])
        text = f"tree {body['tree']}\n{parents}{signature('author')}{signature('committer')}\n"
        return self._write_object("commit", (text + body["message"]).encode())

    def _create_ref(self, ref: str, sha: str) -> ForgeAnswer:
        if ref.removeprefix("refs/heads/") in self.list_branches():
            return 422, {"message": "Reference already exists"}
        self._run_git("update-ref", ref, sha)
        return 201, {"ref": ref}

    def _create_pull(self, body: dict[str, Any]) -> ForgeAnswer:
        if any(pull["head"] == body["head"] for pull in self.pulls):
            return 422, {"message": "Validation Failed"}
        number = len(self.pulls) + 1
        pull = {**body, "number": number, "html_url": f"https://forge.example/site/pull/{number}"}
        self.pulls.append(pull)
        return 201, pull

    def _answer_commit_service(self, path: str, body: dict[str, Any]) -> ForgeAnswer:
        key = (path, body["idempotency_key"])
        if key in self.replies:
            first_body, reply = self.replies[key]
            return (200, reply[1]) if first_body == body else (400, {"code": "BAD_KEY", "message": ""})
        reply = self._handle_service_request(path, body)
        if reply[0] < 300:
            self.replies[key] = (body, reply)
        return reply

    def _handle_service_request(self, path: str, body: dict[str, Any]) -> ForgeAnswer:
        if path == "/v1/open_pr":
            return self._create_pull({"head": body["branch_name"], "title": body["pr_title"]})[0], {
                "pr_url": self.pulls[-1]["html_url"],
                "pr_number": self.pulls[-1]["number"],
            }
        if body["branch_name"] in self.list_branches():
            return 409, {"code": "BRANCH_EXISTS", "message": "the branch exists"}
        entries = []
        for patch in body["patch_bundle"]["patches"]:
            is_deleted = patch["type"] == "delete_file"
            sha = None if is_deleted else self._write_object("blob", patch["new_content"].encode())
            entries.append({"path": patch["path"], "sha": sha})
        base = self._run_git("rev-parse", f"{body['base_ref']}^{{tree}}")
        identity = {"name": "Service", "email": "s@example.com", "date": "2026-01-01T00:00:00+00:00"}
        sha = self._write_commit(
            {
                "tree": self._write_tree(base, entries),
                "parents": [body["base_ref"]],
                "author": identity,
                "committer": identity,
                "message": body["commit_message"],
            }
        )
        self._run_git("update-ref", f"refs/heads/{body['branch_name']}", sha)
        return 200, {"commit_sha": sha, "created_at": "2026-01-01T00:00:00Z"}


class _ForgeHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    forge: FakeForge
    lock: threading.Lock

    def log_message(self, *_args: Any) -> None:
        pass

    def _handle_request(self) -> None:
        with self.lock:
            self._answer_request()

    do_GET = do_POST = do_PATCH = _handle_request  # noqa: N815 - the names the library calls

    def _answer_request(self) -> None:
        forge = self.forge
        url = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.loads(raw) if raw else None
        forge.requests.append((self.command, url.path))
        forge.bodies.append(body)
        forge.tokens.append(self.headers.get("authorization", ""))
        if self.headers.get("authorization") != f"Bearer {forge.token}":
            return self._send_reply(401, {"code": "AUTH_INVALID_TOKEN", "message": "who are you"})
        pending_statuses = forge.failure_statuses.get(url.path.rsplit("/", 1)[-1])
        if pending_statuses:
            return self._send_reply(pending_statuses.pop(0), {"message": "not now"})
        status, answer = forge.answer_request(self.command, url.path, parse_qs(url.query), body)
        lost_suffix = next((end for end in forge.lost_answers if url.path.endswith(end)), None)
        if lost_suffix is not None and self.command == "POST":
            forge.lost_answers.remove(lost_suffix)
            self.close_connection = True
            self.connection.close()
            return None
        return self._send_reply(status, answer)

    def _send_reply(self, status: int, body: Any) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        if self.forge.retry_after:
            self.send_header("retry-after", self.forge.retry_after)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


@contextmanager
def run_forge(root: Path, setup: Callable[[GitCheckout], None] | None = None) -> Iterator[FakeForge]:
    """Run a forge in front of a new bare repository that has one commit on main."""
    checkout = GitCheckout.create(root / "work")
    checkout.write_file("content/docs/_index.md", "---\ntitle: Docs\n---\n")
    checkout.write_file("content/docs/old.md", "---\ntitle: Old\n---\n")
    if setup is not None:
        setup(checkout)
    checkout.commit()
    checkout.run_git("clone", "--quiet", "--bare", ".", str(root / "site.git"))
    fake_forge = FakeForge(GitCheckout(root / "site.git"))
    handler = type("Handler", (_ForgeHandler,), {"forge": fake_forge, "lock": threading.Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    fake_forge.base = f"http://127.0.0.1:{server.server_port}"
    try:
        yield fake_forge
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
