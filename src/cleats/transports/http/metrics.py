"""Figures of the running server in Prometheus' text format."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from cleats.contract.registry import Registry
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime.journal import JOURNAL
from cleats.runtime.vitals import BOUNDS, UNKNOWN, Vitals

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[str, float]
"""What follows the name of a family (the end of a series' name, its labels), and a value."""

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods with figures of their own; a caller must not be able to make up more."""


class Traffic:
    """Requests by route and status, with the time they took. Written by the guard."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.seconds: Counter[tuple[str, str]] = Counter()
        self.open = 0

    def ended(self, method: str, route: str, status: int, seconds: float) -> None:
        method = method if method in METHODS else "other"
        self.requests[method, route, status] += 1
        self.seconds[method, route] += seconds  # type: ignore[assignment] # a Counter adds floats

    def counts(self) -> Iterator[Sample]:
        for (method, route, status), number in sorted(self.requests.items()):
            yield labels(method=method, route=route, status=str(status)), number

    def times(self) -> Iterator[Sample]:
        for (method, route), seconds in sorted(self.seconds.items()):
            yield labels(method=method, route=route), seconds


def text(vitals: Vitals, traffic: Traffic, registry: Registry) -> str:
    """The whole page, as a caller sees it who has these tools."""
    queue = vitals.queue()
    version = labels(tooling=TOOLING_VERSION, schema=SCHEMA_VERSION)
    ended = [
        (labels(tool=name, outcome=way), number)
        for name, way, number in vitals.by_tool()
        if name == UNKNOWN or registry.has(name)
    ]
    times = [
        sample
        for name, (counts, seconds) in vitals.times().items()
        if name == UNKNOWN or registry.has(name)
        for sample in _histogram(name, counts, seconds)
    ]
    families = (
        ("cleats_info", "gauge", "The versions of this server.", [(version, 1)]),
        ("cleats_uptime_seconds", "gauge", "Seconds since the start.", [("", vitals.uptime)]),
        ("cleats_calls_running", "gauge", "Calls that run now.", [("", queue["running"])]),
        ("cleats_calls_waiting", "gauge", "Calls in the queue.", [("", queue["waiting"])]),
        ("cleats_calls_running_max", "gauge", "Most that run.", [("", queue["maxRunning"])]),
        ("cleats_calls_waiting_max", "gauge", "Most that wait.", [("", queue["maxWaiting"])]),
        ("cleats_calls_total", "counter", "Calls that ended, by tool and how.", ended),
        ("cleats_call_seconds", "histogram", "Seconds that calls took, by tool.", times),
        ("cleats_http_open", "gauge", "Requests being answered.", [("", traffic.open)]),
        ("cleats_http_requests_total", "counter", "Requests answered.", traffic.counts()),
        ("cleats_http_seconds_total", "counter", "Seconds spent on them.", traffic.times()),
        ("cleats_lines_dropped_total", "counter", "Log lines lost.", [("", JOURNAL.dropped)]),
    )
    return "".join(line for family in families for line in _family(*family))


def _histogram(tool: str, counts: Sequence[int], seconds: float) -> Iterator[Sample]:
    for bound, number in zip((*map(str, BOUNDS), "+Inf"), accumulate(counts), strict=True):
        yield "_bucket" + labels(tool=tool, le=bound), number
    yield "_sum" + labels(tool=tool), seconds
    yield "_count" + labels(tool=tool), sum(counts)


def _family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {about}\n# TYPE {name} {kind}\n"
    for shown, value in samples:
        yield f"{name}{shown} {round(value, 6)}\n"


def labels(**pairs: str) -> str:
    shown = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs.items())
    return f"{{{shown}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
