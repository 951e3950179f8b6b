"""Spans as their readers get them: from the file of a server, or by OTLP."""

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
class EndedSpan:
    """A span that has ended."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]

    @property
    def ids(self) -> tuple[str, str, str]:
        return self.trace_id, self.span_id, self.parent_id


def read_span_files(*files: Path) -> list[EndedSpan]:
    """Read the spans in the files of servers, in the order of their ends."""
    records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [
        EndedSpan(
            record["name"],
            record["trace_id"],
            record["span_id"],
            record["parent_id"] or "",
            record["start_ns"],
            record["end_ns"],
            record["attributes"],
        )
        for record in records
    ]


def read_home_spans(home: Path) -> list[EndedSpan]:
    """Read the spans of the servers that had this home."""
    return read_span_files(*(home / ".local/share/cleats/telemetry").iterdir())


def pair_with_parents(spans: list[EndedSpan]) -> list[tuple[str, str]]:
    """Return the name of every span with that of its parent, in the order of their starts."""
    names = {child.span_id: child.name for child in spans}
    return [(names.get(child.parent_id, ""), child.name) for child in sorted(spans, key=lambda span: span.start_ns)]


@dataclass
class SpanCollector:
    """The part of an OpenTelemetry collector that receives spans."""

    url: str = ""
    spans: list[EndedSpan] = field(default_factory=list)

    def add_request(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    attributes = {attribute.key: attribute.value.string_value for attribute in span.attributes}
                    self.spans.append(
                        EndedSpan(
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
def run_span_collector() -> Iterator[SpanCollector]:
    """Collect spans on this machine until the block is left."""
    collector = SpanCollector()

    class CollectorHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.add_request(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), CollectorHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
