"""Tests of the Prometheus metrics: stable names, and a series for every tool and outcome."""

import re
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool, Toolset, arguments
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.server_status import DURATION_BOUNDS_SECONDS, ServerStatus
from cleats.transports.http import monitoring
from cleats.transports.http.monitoring import HttpTraffic

SAMPLE_PATTERN = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+)\})? (\S+)')

METRIC_FAMILIES = {
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
"""The metrics that dashboards rely on. Rows may be added; removing or changing one breaks an
alarm."""


async def handle_call(args: Any, _context: Any) -> Any:
    if args.get("fail"):
        raise ToolError(ErrorCode.NOT_FOUND, "no")
    return {}


def build_tool(name: str) -> Tool:
    schema = arguments({"fail": {"type": "boolean"}})
    return Tool(name=name, description="", input=schema, run=handle_call, errors=(ErrorCode.NOT_FOUND,), aliases=())


TEST_REGISTRY = Registry([Toolset(name="x", purpose="", tools=[build_tool("one"), build_tool("two")])])


async def render_metrics(*calls: tuple[str, dict[str, Any]], visible_registry: Registry = TEST_REGISTRY) -> str:
    server_status = ServerStatus()
    dispatcher = Dispatcher(TEST_REGISTRY, concurrency=1, queue=1, status=server_status)
    for name, args in calls:
        await dispatcher.dispatch(ToolCall(tool=name, arguments=args))
    traffic = HttpTraffic()
    traffic.record_request("GET", "/health", 200, 0.5)
    traffic.record_request("BREW", 'odd"\\\nroute', 418, 0.5)
    return monitoring.render_metrics(server_status, traffic, visible_registry)


def parse_samples(text: str) -> dict[tuple[str, str], float]:
    sample_values = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SAMPLE_PATTERN.fullmatch(line)
            assert match, line
            assert (match[1], match[2] or "") not in sample_values, line
            sample_values[match[1], match[2] or ""] = float(match[3])
    return sample_values


@pytest.mark.anyio
async def test_every_family_keeps_its_name_its_kind_and_its_labels() -> None:
    text = await render_metrics(("one", {}))
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    families_with_help = re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE)
    labels: dict[str, set[str]] = {name: set() for name in kinds}
    for name, label_text in parse_samples(text):
        family = name if name in kinds else re.sub("_(bucket|sum|count)$", "", name)
        labels[family] |= set(re.findall(r'([a-z]+)="', label_text))

    assert {name: (kind, labels[name]) for name, kind in kinds.items()} == METRIC_FAMILIES
    assert families_with_help == list(METRIC_FAMILIES)


@pytest.mark.anyio
async def test_calls_are_counted_by_tool_and_by_how_they_ended() -> None:
    sample_values = parse_samples(
        await render_metrics(("one", {}), ("one", {"fail": True}), ("one", {"x": 1}), ("two", {}))
    )

    def count_calls(name: str, outcome: str) -> float:
        return sample_values["cleats_calls_total", f'tool="{name}",outcome="{outcome}"']

    assert [count_calls("one", way) for way in ("done", "failed", "rejected", "cancelled")] == [
        1,
        1,
        1,
        0,
    ]
    assert [count_calls("two", way) for way in ("done", "failed")] == [1, 0]


@pytest.mark.anyio
async def test_times_are_a_histogram_whose_buckets_only_rise() -> None:
    sample_values = parse_samples(await render_metrics(("one", {}), ("one", {})))
    bounds = [*map(str, DURATION_BOUNDS_SECONDS), "+Inf"]
    buckets = [sample_values["cleats_call_seconds_bucket", f'tool="one",le="{bound}"'] for bound in bounds]

    assert buckets == sorted(buckets)
    assert buckets[-1] == sample_values["cleats_call_seconds_count", 'tool="one"'] == 2
    assert sample_values["cleats_call_seconds_sum", 'tool="one"'] >= 0


@pytest.mark.anyio
async def test_names_that_callers_make_up_are_one_series() -> None:
    text = await render_metrics(*((f"made-up-{number}", {}) for number in range(5)))
    sample_values = parse_samples(text)

    assert "made-up" not in text
    assert sample_values["cleats_calls_total", 'tool="(unknown)",outcome="rejected"'] == 5
    assert "BREW" not in text
    assert "418" in text


@pytest.mark.anyio
async def test_a_caller_sees_the_figures_of_its_own_tools() -> None:
    visible_registry = Registry([Toolset(name="x", purpose="", tools=[build_tool("one")])])
    text = await render_metrics(("one", {}), ("two", {}), visible_registry=visible_registry)

    assert 'tool="one"' in text
    assert 'tool="two"' not in text
