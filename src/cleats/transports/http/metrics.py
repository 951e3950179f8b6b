"""Figures of the running server in Prometheus' text format."""

from collections import Counter
from collections.abc import Iterable, Iterator

from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime.vitals import Vitals

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[str, float]
"""The labels in their braces, or nothing, and a value."""


class Traffic:
    """Requests by route and status, with the time they took. Written by the guard."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.seconds: Counter[tuple[str, str]] = Counter()
        self.open = 0

    def ended(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests[method, route, status] += 1
        self.seconds[method, route] += seconds  # type: ignore[assignment] # a Counter adds floats

    def counts(self) -> Iterator[Sample]:
        for (method, route, status), number in sorted(self.requests.items()):
            yield labels(method=method, route=route, status=str(status)), number

    def times(self) -> Iterator[Sample]:
        for (method, route), seconds in sorted(self.seconds.items()):
            yield labels(method=method, route=route), seconds


def text(vitals: Vitals, traffic: Traffic) -> str:
    """The whole page."""
    queue = vitals.queue()
    version = labels(tooling=TOOLING_VERSION, schema=SCHEMA_VERSION)
    ended = [(labels(outcome=way), number) for way, number in vitals.ended().items()]
    families = (
        ("cleats_info", "gauge", "The versions of this server.", [(version, 1)]),
        ("cleats_uptime_seconds", "gauge", "Seconds since the start.", [("", vitals.uptime)]),
        ("cleats_calls_running", "gauge", "Calls that run now.", [("", queue["running"])]),
        ("cleats_calls_waiting", "gauge", "Calls in the queue.", [("", queue["waiting"])]),
        ("cleats_calls_running_max", "gauge", "Most that run.", [("", queue["maxRunning"])]),
        ("cleats_calls_waiting_max", "gauge", "Most that wait.", [("", queue["maxWaiting"])]),
        ("cleats_calls_total", "counter", "Calls that ended, by how.", ended),
        ("cleats_http_open", "gauge", "Requests being answered.", [("", traffic.open)]),
        ("cleats_http_requests_total", "counter", "Requests answered.", traffic.counts()),
        ("cleats_http_seconds_total", "counter", "Seconds spent on them.", traffic.times()),
    )
    return "".join(line for family in families for line in _family(*family))


def _family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {about}\n# TYPE {name} {kind}\n"
    for shown, value in samples:
        yield f"{name}{shown} {round(value, 6)}\n"


def labels(**pairs: str) -> str:
    shown = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs.items())
    return f"{{{shown}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
