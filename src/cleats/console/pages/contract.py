"""The contract of this server: its snapshot, and the difference of two snapshots with witnesses."""

import asyncio
import json
from collections.abc import Mapping
from time import time
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from cleats.console.caller_console import CallerConsole, ContractCheck
from cleats.console.rendering import PAGE_HEADERS
from cleats.contract.snapshot import build_snapshot, encode_snapshot
from cleats.contract.versions import PROTOCOL_VERSION, SCHEMA_VERSION

if TYPE_CHECKING:
    from cleats.contract.compat import ContractFinding

MAX_SNAPSHOT_CHARS: Final = 4_000_000
MAX_SHOWN_FINDINGS: Final = 300


async def show_contract(console: CallerConsole, request: Request) -> Response:
    """Show the contract of this server, and the form that compares snapshots."""
    return _render_contract(console, request)


def _render_contract(console: CallerConsole, request: Request, fault: str = "") -> Response:
    from cleats.contract.compat.report import format_headline  # noqa: PLC0415 - only here

    check = console.last_check
    registry = console.tools.registry
    values: dict[str, Any] = {
        "area": "contract",
        "title": "Contract",
        "schema_version": SCHEMA_VERSION,
        "protocol_version": PROTOCOL_VERSION,
        "tools": [(tool, registry.find_toolset_name(tool)) for tool in registry],
        "check": check,
        "headline": format_headline(check.report) if check else "",
        "findings": [_describe_finding(item) for item in check.report.findings[:MAX_SHOWN_FINDINGS]] if check else [],
        "fault": fault,
    }
    return console.render(request, "contract.html", values, status=400 if fault else 200)


def _describe_finding(finding: "ContractFinding") -> dict[str, Any]:
    is_input = finding.rule.id.startswith("INPUT_")
    return {
        "tool": finding.tool or "the contract",
        "rule": finding.rule.id,
        "level": finding.rule.level.value,
        "is_breaking": finding.is_breaking,
        "pointer": finding.pointer,
        "message": finding.message,
        "witness": None if finding.witness is None else json.dumps(finding.witness.instance, ensure_ascii=False),
        "witness_label": "Accepted before, refused now" if is_input else "Possible now, forbidden before",
        "proof": finding.proof.value,
    }


async def download_snapshot(console: CallerConsole, _request: Request) -> Response:
    """Send the snapshot of the caller's contract as a file."""
    headers = {**PAGE_HEADERS, "content-disposition": 'attachment; filename="contract.json"'}
    data = await asyncio.to_thread(lambda: encode_snapshot(build_snapshot(console.tools.registry)))
    return Response(data, 200, headers, "application/json")


async def compare(console: CallerConsole, request: Request) -> Response:
    """Compare two snapshots; an empty second one is the contract of this server."""
    from cleats.contract.compat import SnapshotError  # noqa: PLC0415 - only here

    form = await console.read_form(request)
    try:
        old = _parse_snapshot(form.get("old"), "Before")
        own = not form.get("new").strip()
        new = build_snapshot(console.tools.registry) if own else _parse_snapshot(form.get("new"), "After")
        report = await asyncio.to_thread(console.server.compare_contracts, old, new)
    except (ValueError, SnapshotError) as error:
        return _render_contract(console, request, str(error))
    label = "with the contract of this server" if own else "of two snapshots"
    console.last_check = ContractCheck(label, time(), report)
    return _render_contract(console, request)


def _parse_snapshot(text: str, label: str) -> Mapping[str, Any]:
    if len(text) > MAX_SNAPSHOT_CHARS:
        raise ValueError(f"{label}: the snapshot is longer than {MAX_SNAPSHOT_CHARS:,} characters.")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{label}: this is not JSON.") from None
    if not isinstance(value, dict):
        raise ValueError(f"{label}: a snapshot is a JSON object.")  # noqa: TRY004 - shown like the others
    return value


ROUTES = (
    ("GET", "/console/contract", show_contract),
    ("GET", "/console/contract/snapshot", download_snapshot),
    ("POST", "/console/contract/diff", compare),
)
