"""Findings of scanners: the list, the code in place, the context pack, and decisions with a reason and an expiry."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from cleats.console.caller_console import CallerConsole, redirect_to
from cleats.console.highlighting import CodeLine, highlight_lines
from cleats.console.rendering import build_link
from cleats.contract.errors import ErrorCode, ToolError

MAX_LISTED_FINDINGS: Final = 300
LINES_AROUND: Final = 5
"""The lines that are shown before and after the place of a finding."""

MAX_SHOWN_PLACES: Final = 5

MAX_RESOLVED_FINDINGS: Final = 10
"""The findings with differing decisions for which the newest one is looked up."""

SEVERAL_DECISIONS: Final = "several"
SEVERITIES: Final = ("critical", "high", "medium", "low", "info", "none")
DECISIONS: Final = (
    ("fix", "Fix it"),
    ("accept", "Accept the risk"),
    ("defer", "Decide later"),
    ("false_positive", "False positive"),
    ("not_affected", "Not affected"),
)
DECISION_LABELS: Final = {**dict(DECISIONS), SEVERAL_DECISIONS: "Several decisions"}


async def list_findings(console: CallerConsole, request: Request) -> Response:
    """List the findings of a repository, the most severe first."""
    console.require_area("findings")
    params = request.query_params
    repository, severity = params.get("repo", ""), params.get("severity", "")
    status, words = params.get("status", ""), params.get("q", "").strip()
    fields = ["recordType=finding"]
    fields += [f"severity={severity}"] if severity in SEVERITIES else []
    problem, findings, decisions = None, [], {}
    try:
        findings = await _search_records(console, words or "*", fields, repository)
        decisions = await _find_decisions(console, repository)
    except ToolError as error:
        problem = error
    rows = [{**finding, "decision": decisions.get(finding["recordId"])} for finding in findings]
    if status == "open":
        rows = [row for row in rows if row["decision"] is None]
    elif status in DECISION_LABELS:
        rows = [row for row in rows if row["decision"] and row["decision"] == status]
    rows.sort(key=lambda row: (_rank_severity(row["severity"]), row["title"]))
    values = {
        "area": "findings",
        "title": "Findings",
        "findings": rows,
        "problem": problem,
        "needs_index": problem is not None and problem.code is ErrorCode.NO_INDEX,
        "severities": SEVERITIES,
        "decisions": DECISIONS,
        "labels": DECISION_LABELS,
        "chosen": {"severity": severity, "status": status, "q": words, "repo": repository},
        "repository": repository or console.caller.default_repository,
    }
    return console.render(request, "findings.html", values)


async def _search_records(
    console: CallerConsole, words: str, fields: list[str], repository: str
) -> list[dict[str, Any]]:
    answer = await console.tools.run(
        "search",
        query=words,
        mode="records",
        output="full",
        meta=fields,
        top=MAX_LISTED_FINDINGS,
        repoPath=repository or None,
    )
    return [_describe_record(hit) for hit in answer["records"]]


async def _find_decisions(console: CallerConsole, repository: str) -> dict[str, str]:
    """Return the status of the decision that holds for each finding, as far as the index and this console know."""
    statuses: dict[str, list[str]] = {}
    for record in await _search_records(console, "*", ["recordType=decision"], repository):
        if record["finding"] and not is_expired(record["expires"]):
            statuses.setdefault(record["finding"], []).append(record["status"])
    decisions = {finding: found[0] for finding, found in statuses.items() if len(set(found)) == 1}
    unclear = [finding for finding in statuses if finding not in decisions]
    for (place, finding), status in list(console.new_decisions.items()):
        if place == repository and decisions.get(finding) == status:
            del console.new_decisions[place, finding]  # the index has it
        elif place == repository and finding not in unclear:
            unclear.insert(0, finding)
    for finding in unclear[:MAX_RESOLVED_FINDINGS]:  # the index does not say which is the newest
        pack = await console.tools.run("triage_context_pack", recordId=finding, repoPath=repository or None)
        own = [item for item in pack["history"] if item["findingRecordId"] == finding and not item["expired"]]
        if own:
            decisions[finding] = max(own, key=lambda item: item["decidedAt"])["status"]
    return {**{finding: SEVERAL_DECISIONS for finding in unclear if finding in statuses}, **decisions}


def is_expired(last_day: str) -> bool:
    """Return whether a decision no longer holds; without a day it always does."""
    return bool(last_day) and last_day[:10] < datetime.now(UTC).date().isoformat()


def _describe_record(hit: Mapping[str, Any]) -> dict[str, Any]:
    fields = (hit.get("docmeta") or {}).get("fields") or {}
    text = hit.get("text") or ""
    place = ""
    if "## Where" in text:
        place = next((line[2:] for line in text.partition("## Where")[2].splitlines() if line.startswith("- ")), "")
    return {
        "recordId": fields.get("recordId", ""),
        "finding": _read_fact(text, "Finding"),
        "expires": _read_fact(text, "Expires"),
        "severity": fields.get("severity", ""),
        "status": fields.get("status", ""),
        "source": fields.get("source", ""),
        "name": hit.get("name") or "",
        "title": hit.get("headline") or hit.get("name") or "",
        "place": place,
    }


def _read_fact(text: str, name: str) -> str:
    """Return a fact from the list at the top of a record's page."""
    head = text.partition("\n\n")[2].partition("\n\n")[0]
    return next((line.partition(": ")[2] for line in head.splitlines() if line.startswith(f"- {name}: ")), "")


def _rank_severity(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


async def show_finding(console: CallerConsole, request: Request) -> Response:
    """Show one finding with its context pack, its code in place and the form for a decision."""
    console.require_area("findings")
    console.tools.registry.find("triage_context_pack")
    record_id, repository = request.path_params["record_id"], request.query_params.get("repo", "")
    pack = await console.tools.run("triage_context_pack", recordId=record_id, repoPath=repository or None)
    finding = pack["finding"]
    places = [place async for place in _read_places(console, finding, repository)]
    values = {
        "area": "findings",
        "title": (finding.get("vuln") or {}).get("title") or record_id,
        "finding": finding,
        "vuln": finding.get("vuln") or {},
        "package": finding.get("package") or {},
        "history": pack.get("history") or [],
        "places": places,
        "queries": [query for query in (pack.get("repoEvidence") or {}).get("queries") or () if query["hits"]],
        "pack": pack,
        "repository": repository,
        "decisions": DECISIONS,
        "labels": DECISION_LABELS,
        "recorded": request.query_params.get("recorded", ""),
    }
    return console.render(request, "finding.html", values)


async def _read_places(
    console: CallerConsole, finding: Mapping[str, Any], repository: str
) -> AsyncIterator[dict[str, Any]]:
    for location in (finding.get("locations") or ())[:MAX_SHOWN_PLACES]:
        first = max(1, location.get("startLine") or 1)
        last = max(first, location.get("endLine") or first)
        lines: list[CodeLine] = []
        if console.tools.has_tools("show_file"):
            try:
                answer = await console.tools.run(
                    "show_file",
                    path=location["path"],
                    startLine=max(1, first - LINES_AROUND),
                    endLine=last + LINES_AROUND,
                    repoPath=repository or None,
                )
            except ToolError:
                answer = None
            if answer:
                lines = highlight_lines(
                    answer["text"].removesuffix("\n"),
                    path=answer["path"],
                    first_line=answer["startLine"],
                    marked_lines=range(first, last + 1),
                )
        yield {"path": location["path"], "line": first, "lines": lines}


async def decide(console: CallerConsole, request: Request) -> Response:
    """Record a decision on a finding."""
    console.require_area("findings")
    form = await console.read_form(request)
    record_id, repository = request.path_params["record_id"], form.get("repo")
    await console.tools.run(
        "triage_decision",
        finding=record_id,
        status=form.get("status"),
        justification=form.get("justification").strip() or None,
        expires=form.get("expires").strip() or None,
        reviewer=form.get("reviewer").strip() or console.caller.name or None,
        repoPath=repository or None,
    )
    console.new_decisions[repository, record_id] = form.get("status")
    while len(console.new_decisions) > MAX_RESOLVED_FINDINGS:
        del console.new_decisions[next(iter(console.new_decisions))]
    return redirect_to(build_link(f"/console/findings/{record_id}", ("repo", repository), ("recorded", "1")))


ROUTES = (
    ("GET", "/console/findings", list_findings),
    ("GET", "/console/findings/{record_id}", show_finding),
    ("POST", "/console/findings/{record_id}/decision", decide),
)
