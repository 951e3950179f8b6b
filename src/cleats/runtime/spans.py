"""The destinations of spans: a small file per process, or a configured OTLP collector."""

import atexit
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Event, Thread

from opentelemetry import trace

from cleats.contract.versions import TOOLING_VERSION
from cleats.runtime.installation import format_install_command
from cleats.runtime.telemetry import LocalTracer, discard_spans
from cleats.settings import Settings

log = logging.getLogger(__name__)

MAX_SPAN_FILE_BYTES = 8 << 20
"""The size at which a span file starts over; the previous one is kept."""

MAX_SPAN_FILES = 20
"""The number of span files kept; every server process writes a separate one."""

EXPORT_SHUTDOWN_SECONDS = 2.0
"""Time that a collector gets for the last spans when the process ends. The exporter would try for
ten seconds, which is longer than whoever started the process is willing to wait."""


class SpanFile:
    """A sink for the journal. The first span opens the file, so that starting costs nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f"spans-{os.getpid()}.ndjson"
        self._size = -1

    def __call__(self, batch: bytes) -> None:
        if self._size < 0:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._prune()
            self._size = 0
        if self._size + len(batch) > MAX_SPAN_FILE_BYTES:
            with suppress(OSError):
                self._path.replace(self._path.with_suffix(".old"))
            self._size = 0
        mode = "ab" if self._size else "wb"
        with self._path.open(mode) as file:
            file.write(batch)
        self._size += len(batch)

    def _prune(self) -> None:
        files_by_age = []
        for path in self._folder.glob("spans-*"):
            with suppress(OSError):  # another server may have removed it just now
                files_by_age.append((path.lstat().st_mtime, path))
        for _, path in sorted(files_by_age)[: max(0, len(files_by_age) - MAX_SPAN_FILES + 1)]:
            with suppress(OSError):  # a file that cannot be removed must not block new spans
                path.unlink()


class BoundedShutdown:
    """Shuts something down when called, and waits only a limited time for that.

    It runs in a thread that is started early: Python starts none while a process ends.
    """

    def __init__(self, shut_down: Callable[[], object], timeout_seconds: float) -> None:
        self._shut_down, self._timeout_seconds = shut_down, timeout_seconds
        self._requested, self._finished = Event(), Event()
        Thread(target=self._run_shutdown, name="parting", daemon=True).start()

    def __call__(self) -> None:
        self._requested.set()
        self._finished.wait(self._timeout_seconds)

    def _run_shutdown(self) -> None:
        self._requested.wait()
        try:
            self._shut_down()
        finally:
            self._finished.set()


def get_tracer(settings: Settings) -> trace.Tracer:
    """Return the tracer that the settings ask for; a broken exporter never stops a server.

    Equal settings always give the same tracer: a process has one span file, and one queue to a collector.
    """
    if settings.otlp_endpoint:
        otlp_tracer = _get_otlp_tracer(settings.otlp_endpoint)
        if otlp_tracer is not None:
            return otlp_tracer
    provider = trace.get_tracer_provider()
    if not isinstance(provider, trace.ProxyTracerProvider):  # the host program installed an SDK
        return provider.get_tracer("cleats", TOOLING_VERSION)
    return _get_local_tracer(settings.data_dir / "telemetry" if settings.telemetry == "local" else None)


@cache
def _get_local_tracer(folder: Path | None) -> LocalTracer:
    return LocalTracer(SpanFile(folder) if folder else discard_spans)


@cache
def _get_otlp_tracer(endpoint: str) -> trace.Tracer | None:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError:
        command = format_install_command("cleats[otlp]")
        log.warning("telemetry.otlp endpoint=%s: not exported; install the exporter: %s", endpoint, command)
        return None
    resource = Resource.create({"service.name": "cleats"})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=endpoint)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    atexit.register(BoundedShutdown(provider.shutdown, EXPORT_SHUTDOWN_SECONDS))
    return provider.get_tracer("cleats", TOOLING_VERSION)
