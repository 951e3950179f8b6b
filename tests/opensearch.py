"""An OpenSearch as far as its REST interface goes for us, on a port of this machine.

It keeps what it is given in memory, finds and ranks it, and is strict: a setting, a parameter, a
field or a route that it does not know is refused as OpenSearch refuses it. What is written can be
found after a refresh, and not before. It can be told to fail.
"""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.opensearch_index import NAME, SETTINGS, Index, filtered
from tests.opensearch_queries import Doc, ParsingError, keys


@dataclass
class Request:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        if not self.body.endswith(b"\n"):
            raise ParsingError(
                "illegal_argument_exception", "must be terminated by a newline [\\n]"
            )
        return [json.loads(line) for line in self.body.splitlines()]


Fault = Callable[[Request], tuple[int, Any] | None]
"""Answers a request instead of the cluster; None lets it through. Status 0 hangs up."""


@dataclass
class OpenSearch:
    """The indexes, what was asked, and how to fail."""

    indexes: dict[str, Index] = field(default_factory=dict)
    seen: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    wants: str = ""
    """What every request must have as its authorization."""
    full: int = 0
    """Documents of the next requests that are turned away for now."""
    base: str = ""
    turn: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> tuple[int, Any]:
        """What a request gets."""
        self.seen.append(request)
        for fault in self.faults:
            if (said := fault(request)) is not None:
                return said
        if self.wants and request.headers.get("authorization") != self.wants:
            return 401, {"error": "Unauthorized", "status": 401}
        try:
            status, body = self._route(request)
        except ParsingError as error:
            return error.status, _error(error)
        patterns = request.query.get("filter_path")
        return status, filtered(body, patterns.split(",")) if patterns else body

    def _route(self, request: Request) -> tuple[int, Any]:  # noqa: C901 - a table
        target, _, action = request.path.strip("/").partition("/")
        if target == "_aliases":
            return 200, self._move(request.json)
        match request.method, action:
            case "PUT", "":
                return 200, self._create(target, request.json)
            case "GET", "":
                return 200, {each.name: _described(each) for each in self._named(target)}
            case "DELETE", "":
                return 200, self._delete(target)
            case "PUT", "_mapping":
                return 200, self._mark(target, request.json)
            case "GET", "_mapping":
                return 200, {e.name: {"mappings": e.mappings} for e in self._named(target)}
            case "POST", "_refresh":
                for index in self._named(target):
                    index.docs, index.searchers = dict(index.written), {}
                return 200, {"_shards": {"total": 1, "successful": 1, "failed": 0}}
            case "GET", "_count":
                [index] = self._named(target)
                return 200, {"count": len(index.docs), "_shards": {"total": 1, "failed": 0}}
            case "POST", "_bulk":
                return 200, self._bulk(target, request)
            case "POST", "_msearch":
                return 200, self._msearch(target, request)
            case "POST", "_mget":
                return 200, self._mget(target, request.json)
        raise ParsingError("illegal_argument_exception", f"no handler found for {request.path}")

    def _named(self, target: str) -> list[Index]:
        indexes = self.indexes.values()
        found = [e for e in indexes if fnmatchcase(e.name, target) or target in e.aliases]
        if not found and "*" not in target:
            raise _missing(target)
        return found

    def _create(self, name: str, body: Any) -> Any:
        keys(body, {"settings", "mappings", "aliases"})
        if not NAME.fullmatch(name) or len(name.encode()) > 255:
            raise ParsingError("invalid_index_name_exception", name)
        if name in self.indexes or any(name in each.aliases for each in self.indexes.values()):
            raise ParsingError(
                "resource_already_exists_exception", f"index [{name}] already exists"
            )
        settings, mappings = body["settings"]["index"], body["mappings"]
        keys(settings, SETTINGS)
        keys(mappings, {"dynamic", "_source", "_meta", "properties"})
        made = Index(name, settings, mappings, set(body.get("aliases", {})))
        made.map(mappings["properties"])
        self.indexes[name] = made
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def _delete(self, name: str) -> Any:
        if name not in self.indexes:
            raise _missing(name)
        del self.indexes[name]
        return {"acknowledged": True}

    def _mark(self, name: str, body: Any) -> Any:
        keys(body, {"_meta"})
        [index] = self._named(name)
        index.mappings["_meta"] = body["_meta"]
        return {"acknowledged": True}

    def _move(self, body: Any) -> Any:
        keys(body, {"actions"})
        aliases = {name: set(index.aliases) for name, index in self.indexes.items()}
        for action in body["actions"]:
            [(verb, given)] = action.items()
            keys(given, {"index", "alias"})
            if given["index"] not in aliases:
                raise _missing(given["index"])
            own = aliases[given["index"]]
            if verb == "add":
                own.add(given["alias"])
            elif given["alias"] in own:
                own.remove(given["alias"])
            else:
                raise ParsingError("aliases_not_found_exception", f"{given} missing", 404)
        for name, now in aliases.items():
            self.indexes[name].aliases = now
        return {"acknowledged": True}

    def _bulk(self, target: str, request: Request) -> Any:
        keys(request.query, {"require_alias", "filter_path"})
        lines = iter(request.lines)
        items = [self._item(target, request, each, next(lines)) for each in lines]
        failed = any(item["index"]["status"] >= 300 for item in items)
        return {"took": 1, "errors": failed, "items": items}

    def _item(self, target: str, request: Request, action: Any, body: Any) -> Any:
        [(_, given)] = action.items()
        keys(given, {"_id"})
        about = {"_index": target, "_id": given["_id"]}
        try:
            index, name = self._room(target, request), given["_id"]
            strict = index.mappings.get("dynamic") == "strict"
            index.written[name] = index.read(name, body) if strict else Doc(name, body)
        except ParsingError as error:
            why = {"type": error.kind, "reason": error.reason}
            return {"index": {**about, "status": error.status, "error": why}}
        return {"index": {**about, "status": 201, "result": "created"}}

    def _room(self, target: str, request: Request) -> Index:
        if self.full:
            self.full -= 1
            raise ParsingError("rejected_execution_exception", "the queue is full", 429)
        aliases = {alias for index in self.indexes.values() for alias in index.aliases}
        if "require_alias" in request.query and target not in aliases:
            raise _missing(target)
        if target not in aliases | self.indexes.keys():  # OpenSearch makes what is written to
            self.indexes[target] = Index(target, {"number_of_shards": 1}, {}, set())
        [index] = self._named(target)
        return index

    def _msearch(self, target: str, request: Request) -> Any:
        keys(request.query, set())
        [index] = self._named(target)
        responses = []
        for head, body in zip(request.lines[::2], request.lines[1::2], strict=True):
            try:
                keys(head, {"search_type"})
                dfs = head.get("search_type") == "dfs_query_then_fetch"
                responses.append(index.search(body, dfs=dfs))
            except ParsingError as error:
                responses.append(_error(error))
        return {"took": 1, "responses": responses}

    def _mget(self, target: str, body: Any) -> Any:
        keys(body, {"ids"})
        [index] = self._named(target)
        found = [(each, index.written.get(each)) for each in body["ids"]]
        return {
            "docs": [
                {"_index": index.name, "_id": each, "found": doc is not None}
                | ({"_source": doc.source} if doc else {})
                for each, doc in found
            ]
        }


def _described(index: Index) -> dict[str, Any]:
    return {"aliases": {each: {} for each in index.aliases}, "mappings": index.mappings}


def _missing(name: str) -> ParsingError:
    return ParsingError("index_not_found_exception", f"no such index [{name}]", 404)


def _error(error: ParsingError) -> dict[str, Any]:
    cause = {"type": error.kind, "reason": error.reason}
    return {"error": {"root_cause": [cause], **cause}, "status": error.status}


def basic(user: str, password: str) -> str:
    """What a request says that was sent by somebody."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: OpenSearch

    def log_message(self, *_args: Any) -> None:
        pass

    def _any(self) -> None:
        url = urlsplit(self.path)
        sent = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        request = Request(self.command, unquote(url.path), query, headers, sent)
        with self.cluster.turn:
            status, body = self.cluster.answer(request)
        if not status:
            self.close_connection = True
            return
        data = json.dumps(body).encode()
        with suppress(ConnectionError):  # a caller that was killed or gave up
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            if 300 <= status < 400:
                self.send_header("location", f"{self.cluster.base}/elsewhere")
            self.end_headers()
            self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = _any  # noqa: N815 - the names the library calls


@contextmanager
def opensearch() -> Iterator[OpenSearch]:
    """An empty cluster, until the block is left."""
    cluster = OpenSearch()
    handler = type("Handler", (_Handler,), {"cluster": cluster})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    cluster.base = f"http://127.0.0.1:{server.server_port}"
    try:
        yield cluster
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
