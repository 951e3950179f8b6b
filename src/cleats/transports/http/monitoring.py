"""What the server records about itself: metrics in Prometheus' text format, readiness, and log files of JSON lines.

A log line is written in the background. One that cannot be written is lost and counted; a full disk fails no call.
"""

import asyncio
import logging
import os
import re
import stat
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from time import monotonic, time
from typing import Any, TypeAlias

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import format_timestamp
from cleats.contract.registry import Registry
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime.background_writer import PROCESS_JOURNAL, LineSink, write_to_stderr
from cleats.runtime.server_status import DURATION_BOUNDS_SECONDS, UNKNOWN_TOOL_NAME, ServerStatus

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MetricSample = tuple[str, float]
"""The text after a family's name (the end of the series name, its labels), and a value."""

COUNTED_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that are counted separately; a caller must not be able to create more series."""


class TrafficFigures(msgspec.Struct, frozen=True):
    """The figures of one server process, for the other processes of the same server."""

    requests: list[tuple[str, str, int, int]]
    """Method, route, status and number."""
    seconds: list[tuple[str, str, float]]
    open_requests: int
    dropped_lines: int


async def _find_no_figures() -> Sequence[TrafficFigures]:
    return ()


class HttpTraffic:
    """Requests by route and status, with their duration. Written by the guard."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.seconds: Counter[tuple[str, str]] = Counter()
        self.open_requests = 0
        self.foreign_dropped_lines = 0
        """The log lines that other processes lost."""
        self.read_other_processes: Callable[[], Awaitable[Sequence[TrafficFigures]]] = _find_no_figures
        """Reads the figures of the other processes of this server."""

    def record_request(self, method: str, route: str, status: int, seconds: float) -> None:
        method = method if method in COUNTED_METHODS else "other"
        self.requests[method, route, status] += 1
        self.seconds[method, route] += seconds  # type: ignore[assignment] # a Counter adds floats

    def export_figures(self) -> TrafficFigures:
        """Return the figures of this process."""
        return TrafficFigures(
            requests=[(*key, number) for key, number in self.requests.items()],
            seconds=[(*key, seconds) for key, seconds in self.seconds.items()],
            open_requests=self.open_requests,
            dropped_lines=PROCESS_JOURNAL.dropped + self.foreign_dropped_lines,
        )

    def add_counts(self, figures: TrafficFigures) -> None:
        """Add the finished requests of another process."""
        for method, route, status, number in figures.requests:
            self.requests[method, route, status] += number
        for method, route, seconds in figures.seconds:
            self.seconds[method, route] += seconds  # type: ignore[assignment] # a Counter adds floats
        self.foreign_dropped_lines += figures.dropped_lines

    async def collect(self) -> "HttpTraffic":
        """Return the traffic of the whole server, added up over its processes."""
        total = HttpTraffic()
        total.requests.update(self.requests)
        total.seconds.update(self.seconds)
        total.open_requests, total.foreign_dropped_lines = self.open_requests, self.foreign_dropped_lines
        for figures in await self.read_other_processes():
            total.add_counts(figures)
            total.open_requests += figures.open_requests
        return total


def render_metrics(vitals: ServerStatus, traffic: HttpTraffic, registry: Registry) -> str:
    """Render all metrics as visible to a caller with these tools."""
    queue = vitals.get_queue_load()
    dropped_lines = PROCESS_JOURNAL.dropped + traffic.foreign_dropped_lines
    version = format_labels(tooling=TOOLING_VERSION, schema=SCHEMA_VERSION)
    call_counts = [
        (format_labels(tool=name, outcome=outcome), number)
        for name, outcome, number in vitals.count_outcomes_by_tool()
        if name == UNKNOWN_TOOL_NAME or registry.has_tool(name)
    ]
    times = [
        sample
        for name, (counts, seconds) in vitals.get_duration_histograms().items()
        if name == UNKNOWN_TOOL_NAME or registry.has_tool(name)
        for sample in _histogram_samples(name, counts, seconds)
    ]
    request_counts = [
        (format_labels(method=method, route=route, status=str(status)), number)
        for (method, route, status), number in sorted(traffic.requests.items())
    ]
    request_seconds = [
        (format_labels(method=method, route=route), seconds)
        for (method, route), seconds in sorted(traffic.seconds.items())
    ]
    families = (
        ("cleats_info", "gauge", "Versions of this server.", [(version, 1)]),
        ("cleats_uptime_seconds", "gauge", "Seconds since the start.", [("", vitals.uptime)]),
        ("cleats_calls_running", "gauge", "Number of running calls.", [("", queue["running"])]),
        ("cleats_calls_waiting", "gauge", "Number of waiting calls.", [("", queue["waiting"])]),
        ("cleats_calls_running_max", "gauge", "Maximum number of running calls.", [("", queue["maxRunning"])]),
        ("cleats_calls_waiting_max", "gauge", "Maximum number of waiting calls.", [("", queue["maxWaiting"])]),
        ("cleats_calls_total", "counter", "Number of finished calls, by tool and outcome.", call_counts),
        ("cleats_call_seconds", "histogram", "Duration of calls in seconds, by tool.", times),
        ("cleats_http_open", "gauge", "Number of requests in progress.", [("", traffic.open_requests)]),
        ("cleats_http_requests_total", "counter", "Requests answered.", request_counts),
        ("cleats_http_seconds_total", "counter", "Duration of requests in seconds.", request_seconds),
        ("cleats_lines_dropped_total", "counter", "Number of lost log lines.", [("", dropped_lines)]),
    )
    return "".join(line for family in families for line in _format_family(*family))


def _histogram_samples(tool: str, counts: Sequence[int], seconds: float) -> Iterator[MetricSample]:
    for bound, number in zip((*map(str, DURATION_BOUNDS_SECONDS), "+Inf"), accumulate(counts), strict=True):
        yield "_bucket" + format_labels(tool=tool, le=bound), number
    yield "_sum" + format_labels(tool=tool), seconds
    yield "_count" + format_labels(tool=tool), sum(counts)


def _format_family(name: str, kind: str, description: str, samples: Iterable[MetricSample]) -> Iterator[str]:
    yield f"# HELP {name} {description}\n# TYPE {name} {kind}\n"
    for suffix, value in samples:
        yield f"{name}{suffix} {round(value, 6)}\n"


def format_labels(**pairs: str) -> str:
    escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    return "{" + ",".join(f'{name}="{value.translate(escapes)}"' for name, value in pairs.items()) + "}"


log = logging.getLogger(__name__)

CHECK_TIMEOUT_SECONDS = 2.0
"""The time that one check may take."""

RESULT_CACHE_SECONDS = 1.0
"""The time that a result is reused, so that probes do not become a load themselves."""

ReadinessCheck: TypeAlias = Callable[[], Awaitable[None]]
"""A function that returns if a dependency can be reached, and raises otherwise."""


class ReadinessChecker:
    """The checker behind `/ready`. Only the log names the failed check; callers do not learn it."""

    def __init__(self, checks: Mapping[str, ReadinessCheck]) -> None:
        self.stopping = False
        self._checks = dict(checks)
        self._checked_at = -RESULT_CACHE_SECONDS
        self._failed_checks: list[str] = []
        self._lock = asyncio.Lock()

    async def check(self) -> None:
        """Return if the server accepts requests.

        Raises:
            ToolError: UNAVAILABLE.
        """
        if self.stopping:
            raise ToolError(ErrorCode.UNAVAILABLE, "The server is stopping.")
        async with self._lock:
            if monotonic() - self._checked_at >= RESULT_CACHE_SECONDS:
                failures = await asyncio.gather(*map(self._has_failed, self._checks))
                self._failed_checks = [name for name, failed in zip(self._checks, failures, strict=True) if failed]
                self._checked_at = monotonic()
        if self._failed_checks:
            raise ToolError(
                ErrorCode.UNAVAILABLE,
                "A service that the server needs is unreachable.",
                hint="The server's log names it.",
            )

    async def _has_failed(self, name: str) -> bool:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
                await self._checks[name]()
        except Exception as error:  # noqa: BLE001 - any error means not ready
            log.warning("ready.missing check=%s: %s: %s", name, type(error).__name__, error)
            return True
        return False


MAX_OLD_FILES = 4
"""The number of rotated files that are kept besides the current one."""

MAX_TEXT_CHARS = 200
"""The maximum length of a text that comes from outside."""

_encode = msgspec.json.Encoder().encode

WriteRecord: TypeAlias = Callable[[Mapping[str, Any]], None]
"""A function that writes one record. Cheap, never waits, never raises."""


class RotatingLineFile:
    """An outlet that rotates a full file; it opens the file for every batch, so that it may be moved at any time."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path, self._limit = path, limit
        self._ends_mid_line = False
        self.lost_lines = 0

    def __call__(self, batch: bytes) -> None:
        try:
            self._write_batch(batch)
        except OSError as error:
            if not self.lost_lines:  # logged once, because the same error may recur for every line
                log.error("lines.lost file=%s: %s", self._path, error.strerror)  # noqa: TRY400
            line_count = batch.count(b"\n")
            self.lost_lines += line_count
            PROCESS_JOURNAL.dropped += line_count  # which `/metrics` shows

    def _write_batch(self, batch: bytes) -> None:
        file = self._open_file(len(batch))
        try:
            view = memoryview(b"\n" + batch if self._ends_mid_line else batch)
            self._ends_mid_line = True  # until all of it is there
            while view:
                view = view[os.write(file, view) :]
            self._ends_mid_line = False
        finally:
            os.close(file)

    def _open_file(self, size: int) -> int:
        """Return the file, locked, with room for a batch; a full one is rotated by one of the processes that write."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        while True:
            try:
                file = os.open(self._path, flags, 0o600)
            except FileNotFoundError:
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                file = os.open(self._path, flags, 0o600)
            try:
                if self._has_room(file, size):
                    return file
            except OSError:
                os.close(file)
                raise
            os.close(file)
            if fcntl is None:  # Windows renames no open file
                self._rotate_files()

    def _has_room(self, file: int, size: int) -> bool:
        """Lock a file; return whether it is the current one and has room for a batch. Rotate it if it is full."""
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return True
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
            status = os.fstat(file)
        if not self._is_current(status):  # another process has rotated it
            return False
        if not status.st_size or status.st_size + size <= self._limit:
            return True
        if fcntl is not None:
            self._rotate_files()
        return False

    def _is_current(self, status: os.stat_result) -> bool:
        try:
            return os.path.samestat(self._path.stat(), status)
        except FileNotFoundError:
            return False

    def _rotate_files(self) -> None:
        for number in range(MAX_OLD_FILES - 1, 0, -1):
            older = self._numbered_path(number)
            if older.exists():
                older.replace(self._numbered_path(number + 1))
        self._path.replace(self._numbered_path(1))
        self._ends_mid_line = False

    def _numbered_path(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def open_outlet(destination: str, limit: int) -> LineSink | None:
    """Return the outlet that a setting names: None, `stderr` or a file."""
    if destination in ("", "stderr"):
        return write_to_stderr if destination else None
    return RotatingLineFile(Path(destination).expanduser().absolute(), limit)


def build_writer(outlet: LineSink | None) -> WriteRecord | None:
    """Return a function that writes timestamped records to an outlet; None without an outlet."""
    if outlet is None:
        return None

    def write_record(facts: Mapping[str, Any]) -> None:
        PROCESS_JOURNAL.add_line(outlet, _encode({"time": format_timestamp(time()), **facts}) + b"\n")

    return write_record


_SURROGATE_PATTERN = re.compile("[\ud800-\udfff]")


def clean_text(text: object) -> str:
    """Return a text from outside, shortened and without invalid Unicode."""
    return _SURROGATE_PATTERN.sub("\N{REPLACEMENT CHARACTER}", str(text)[:MAX_TEXT_CHARS])
