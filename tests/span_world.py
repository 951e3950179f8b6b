"""Spans as whoever looks at them gets them: from the file of a server, or by OTLP."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class Seen:
    """A span that has ended."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    began: int
    ended: int
    attributes: dict[str, Any]

    @property
    def ids(self) -> tuple[str, str, str]:
        return self.trace_id, self.span_id, self.parent_id


def of_file(*files: Path) -> list[Seen]:
    """The spans in the files of servers, in the order of their ends."""
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [
        Seen(
            each["name"],
            each["trace_id"],
            each["span_id"],
            each["parent_id"] or "",
            each["start_ns"],
            each["end_ns"],
            each["attributes"],
        )
        for each in lines
    ]


def of_home(home: Path) -> list[Seen]:
    """The spans of the servers that had this home."""
    return of_file(*(home / ".local/share/cleats/telemetry").iterdir())


def tree(spans: list[Seen]) -> list[tuple[str, str]]:
    """Every span with the one above it, by name, in the order of their beginnings."""
    names = {each.span_id: each.name for each in spans}
    return [
        (names.get(each.parent_id, ""), each.name)
        for each in sorted(spans, key=lambda span: span.began)
    ]


@dataclass
class SpanCollector:
    """An OpenTelemetry collector, as far as spans are concerned."""

    url: str = ""
    spans: list[Seen] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    attributes = {each.key: each.value.string_value for each in span.attributes}
                    self.spans.append(
                        Seen(
                            span.name,
                            span.trace_id.hex(),
                            span.span_id.hex(),
                            span.parent_span_id.hex(),
                            span.start_time_unix_nano,
                            span.end_time_unix_nano,
                            attributes,
                        )
                    )


@contextmanager
def span_collector() -> Iterator[SpanCollector]:
    """Take spans on this machine while the block lasts."""
    collector = SpanCollector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
