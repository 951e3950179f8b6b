"""Figures for Prometheus: names that stay, a series for every tool and outcome, none made up."""

import re
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool, Toolset, arguments
from cleats.runtime.call import Call
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.vitals import BOUNDS, Vitals
from cleats.transports.http import metrics
from cleats.transports.http.metrics import Traffic

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+)\})? (\S+)')

FAMILIES = {
    "cleats_info": ("gauge", {"tooling", "schema"}),
    "cleats_uptime_seconds": ("gauge", set()),
    "cleats_calls_running": ("gauge", set()),
    "cleats_calls_waiting": ("gauge", set()),
    "cleats_calls_running_max": ("gauge", set()),
    "cleats_calls_waiting_max": ("gauge", set()),
    "cleats_calls_total": ("counter", {"tool", "outcome"}),
    "cleats_call_seconds": ("histogram", {"tool", "le"}),
    "cleats_http_open": ("gauge", set()),
    "cleats_http_requests_total": ("counter", {"method", "route", "status"}),
    "cleats_http_seconds_total": ("counter", {"method", "route"}),
    "cleats_lines_dropped_total": ("counter", set()),
}
"""What dashboards rely on. A row may be added; one that goes or changes breaks somebody's alarm."""


async def work(given: Any, _context: Any) -> Any:
    if given.get("fail"):
        raise ToolError(ErrorCode.NOT_FOUND, "no")
    return {}


def tool(name: str) -> Tool:
    schema = arguments({"fail": {"type": "boolean"}})
    return Tool(
        name=name, description="", input=schema, run=work, errors=(ErrorCode.NOT_FOUND,), aliases=()
    )


REGISTRY = Registry([Toolset(name="x", purpose="", tools=[tool("one"), tool("two")])])


async def page(*calls: tuple[str, dict[str, Any]], shown: Registry = REGISTRY) -> str:
    vitals = Vitals()
    dispatcher = Dispatcher(REGISTRY, concurrency=1, queue=1, vitals=vitals)
    for name, given in calls:
        await dispatcher.dispatch(Call(tool=name, arguments=given))
    traffic = Traffic()
    traffic.ended("GET", "/health", 200, 0.5)
    traffic.ended("BREW", 'odd"\\\nroute', 418, 0.5)
    return metrics.text(vitals, traffic, shown)


def samples(text: str) -> dict[tuple[str, str], float]:
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            read = SAMPLE.fullmatch(line)
            assert read, line
            assert (read[1], read[2] or "") not in found, line
            found[read[1], read[2] or ""] = float(read[3])
    return found


@pytest.mark.anyio
async def test_every_family_keeps_its_name_its_kind_and_its_labels() -> None:
    text = await page(("one", {}))
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    helped = re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE)
    labels: dict[str, set[str]] = {name: set() for name in kinds}
    for name, given in samples(text):
        family = name if name in kinds else re.sub("_(bucket|sum|count)$", "", name)
        labels[family] |= set(re.findall(r'([a-z]+)="', given))

    assert {name: (kind, labels[name]) for name, kind in kinds.items()} == FAMILIES
    assert helped == list(FAMILIES)


@pytest.mark.anyio
async def test_calls_are_counted_by_tool_and_by_how_they_ended() -> None:
    found = samples(
        await page(("one", {}), ("one", {"fail": True}), ("one", {"x": 1}), ("two", {}))
    )

    def count(name: str, outcome: str) -> float:
        return found["cleats_calls_total", f'tool="{name}",outcome="{outcome}"']

    assert [count("one", way) for way in ("done", "failed", "rejected", "cancelled")] == [
        1,
        1,
        1,
        0,
    ]
    assert [count("two", way) for way in ("done", "failed")] == [1, 0]


@pytest.mark.anyio
async def test_times_are_a_histogram_whose_buckets_only_rise() -> None:
    found = samples(await page(("one", {}), ("one", {})))
    bounds = [*map(str, BOUNDS), "+Inf"]
    buckets = [found["cleats_call_seconds_bucket", f'tool="one",le="{each}"'] for each in bounds]

    assert buckets == sorted(buckets)
    assert buckets[-1] == found["cleats_call_seconds_count", 'tool="one"'] == 2
    assert found["cleats_call_seconds_sum", 'tool="one"'] >= 0


@pytest.mark.anyio
async def test_names_that_callers_make_up_are_one_series() -> None:
    text = await page(*((f"made-up-{number}", {}) for number in range(5)))
    found = samples(text)

    assert "made-up" not in text
    assert found["cleats_calls_total", 'tool="(unknown)",outcome="rejected"'] == 5
    assert "BREW" not in text
    assert "418" in text


@pytest.mark.anyio
async def test_a_caller_sees_the_figures_of_its_own_tools() -> None:
    shown = Registry([Toolset(name="x", purpose="", tools=[tool("one")])])
    text = await page(("one", {}), ("two", {}), shown=shown)

    assert 'tool="one"' in text
    assert 'tool="two"' not in text
