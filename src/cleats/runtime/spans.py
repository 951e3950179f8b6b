"""Where spans go: a small file of this process, or an OTLP collector when one is configured."""

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
from cleats.runtime.telemetry import LocalTracer, discard
from cleats.settings import Settings

log = logging.getLogger(__name__)

CAP = 8 << 20
"""Bytes a span file grows to before it starts over, keeping the one before it."""

KEPT = 20
"""Span files kept; every server process writes one of its own."""

PARTING = 2.0
"""Seconds that a collector has for the last spans when the process ends. The exporter would try for
ten, and whoever started us has lost patience before."""


class SpanFile:
    """An outlet for the journal. Opened by the first span, so that a start costs nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f"spans-{os.getpid()}.ndjson"
        self._size = -1

    def __call__(self, batch: bytes) -> None:
        if self._size < 0:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._prune()
            self._size = 0
        if self._size + len(batch) > CAP:
            with suppress(OSError):
                self._path.replace(self._path.with_suffix(".old"))
            self._size = 0
        mode = "ab" if self._size else "wb"
        with self._path.open(mode) as file:
            file.write(batch)
        self._size += len(batch)

    def _prune(self) -> None:
        aged = []
        for path in self._folder.glob("spans-*"):
            with suppress(OSError):  # a server that started with us has removed it just now
                aged.append((path.lstat().st_mtime, path))
        for _, path in sorted(aged)[: max(0, len(aged) - KEPT + 1)]:
            with suppress(OSError):  # what cannot be removed must not cost the spans to come
                path.unlink()


class Parting:
    """Ends something when it is called, and waits only so long for that.

    In a thread that is there from the beginning: Python starts none for a process that ends.
    """

    def __init__(self, end: Callable[[], object], patience: float) -> None:
        self._end, self._patience = end, patience
        self._due, self._done = Event(), Event()
        Thread(target=self._work, name="parting", daemon=True).start()

    def __call__(self) -> None:
        self._due.set()
        self._done.wait(self._patience)

    def _work(self) -> None:
        self._due.wait()
        try:
            self._end()
        finally:
            self._done.set()


def tracer(settings: Settings) -> trace.Tracer:
    """The tracer that the settings ask for; a broken exporter never stops a server.

    Whoever asks with the same settings gets the same one: a process has one span file, and one
    queue to a collector.
    """
    if settings.otlp_endpoint:
        exported = _otlp(settings.otlp_endpoint)
        if exported is not None:
            return exported
    provider = trace.get_tracer_provider()
    if not isinstance(provider, trace.ProxyTracerProvider):  # the host program installed an SDK
        return provider.get_tracer("cleats", TOOLING_VERSION)
    return _local(settings.data_dir / "telemetry" if settings.telemetry == "local" else None)


@cache
def _local(folder: Path | None) -> LocalTracer:
    return LocalTracer(SpanFile(folder) if folder else discard)


@cache
def _otlp(endpoint: str) -> trace.Tracer | None:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError:
        log.warning(
            "telemetry.otlp endpoint=%s: not exported; pip install 'cleats[otlp]' brings it",
            endpoint,
        )
        return None
    resource = Resource.create({"service.name": "cleats"})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=endpoint)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    atexit.register(Parting(provider.shutdown, PARTING))
    return provider.get_tracer("cleats", TOOLING_VERSION)
