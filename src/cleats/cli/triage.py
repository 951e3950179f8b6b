"""The `cleats triage` command: ingest scanner findings, record decisions, and pack context."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from cleats.cli.guesses import GuessingGroup
from cleats.cli.output import echo_json, format_columns, format_count, is_json_requested, print_answer, style_heading
from cleats.cli.tool_command import call_tool, exit_with_error, json_command, repo_option
from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import SettingError, Settings
from cleats.toolsets.code.records.model import SOURCE_NAMES, DecisionStatus, TriageRecord, collect_filter_fields

if TYPE_CHECKING:
    from cleats.toolsets.code.records.archive import RecordArchive

SEVERITY_ORDER = ("critical", "high", "medium", "low", "info", "none")

_ARGUMENT_FLAGS = {
    "inputPath": "FILE",
    "recordId": "FINDING",
    "finding": "FINDING",
    "justification": "--because",
    "codes": "--code",
    "evidence": "--evidence",
    "reviewer": "--reviewer",
    "expires": "--expires",
    "outPath": "--out",
    "meta": "--meta",
    "repoPath": "--repo",
}
"""The names of the tools' arguments on the command line."""

_meta_help = "Additional field of the record; repeatable."
_meta_option = click.option("--meta", "pairs", multiple=True, metavar="KEY=TEXT", help=_meta_help)


@click.group(cls=GuessingGroup)
def triage() -> None:
    """Store the findings of security scanners and your decisions about them.

    Findings have permanent ids; importing the same report twice changes nothing. After an index update,
    `cleats search --mode records` finds them.

    Examples:
      cleats triage ingest sarif bandit.sarif --index
      cleats triage list --severity high
      cleats triage pack 0a4d55a8
      cleats triage decide 0a4d55a8 accept --because "not reachable" --expires 2027-01-31
    """


@triage.command()
@click.argument("source", type=click.Choice(SOURCE_NAMES), metavar="SOURCE")
@click.argument("file", type=click.Path())
@_meta_option
@click.option("--index", "build", is_flag=True, help="Update the index afterwards.")
@repo_option
@json_command
def ingest(
    settings: Settings, /, source: str, file: str, *, pairs: tuple[str, ...], build: bool, repo: str | None
) -> None:
    """Import FILE, a report of SOURCE in JSON or JSON Lines.

    SOURCE is dependabot, aws_inspector, sarif, osv, pip_audit, npm_audit, cyclonedx, generic or manual.

    Examples:
      cleats triage ingest sarif bandit.sarif --index
      pip-audit -f json > audit.json; cleats triage ingest pip_audit audit.json

    Exits 0  if it was imported; invalid lines are skipped,
          1  if the file does not exist or the disk is full,
          2  if the file is not a report of SOURCE, or records cannot be written.
    """
    arguments = {"source": source, "inputPath": str(Path.cwd() / file), "buildIndex": build or None, "repoPath": repo}
    answer = call_tool(settings, "triage_ingest", _ARGUMENT_FLAGS, meta=_parse_meta(pairs), **arguments)
    print_answer(answer, _summarize_ingestion)
    if is_json_requested():
        return
    for error in answer["errorDetails"]:
        click.echo(f"  {error['index']}: {error['message']}", err=True)
    if answer["errors"] > len(answer["errorDetails"]):
        click.echo(f"  ... {answer['errors']:,} errors in all", err=True)


def _summarize_ingestion(answer: Mapping[str, Any]) -> str:
    words = [word for word in ("created", "updated", "unchanged") if answer[word]]
    counts_text = ", ".join(f"{answer[word]:,} {word}" for word in words) or "none taken in"
    return f"{format_count(answer['total'], 'finding')}{f': {counts_text}' if answer['total'] else ''}."


@triage.command()
@click.argument("finding")
@click.argument("status", type=click.Choice(get_args(DecisionStatus)))
@click.option("--because", "justification", metavar="TEXT", help="Why.")
@click.option(
    "--code", "codes", multiple=True, help="Code of the justification, such as code_not_reachable; repeatable."
)
@click.option("--evidence", multiple=True, help="Path, link or commit; repeatable.")
@click.option("--reviewer", help="Name of the reviewer.")
@click.option("--expires", metavar="DATE", help="Last day of validity, such as 2027-01-31.")
@_meta_option
@repo_option
@json_command
def decide(
    settings: Settings, /, finding: str, *, pairs: tuple[str, ...], repo: str | None, **option_values: Any
) -> None:
    """Record a decision about FINDING, an id or its first characters.

    Examples:
      cleats triage decide 0a4d55a8 fix
      cleats triage decide 0a4d55a8 accept --because "not reachable" --expires 2027-01-31

    Exits 0  if the decision was recorded,
          1  if the finding does not exist,
          2  if a date is invalid.
    """
    arguments = {
        key: list(value) if isinstance(value, tuple) else value for key, value in option_values.items() if value
    }
    arguments |= {"finding": _resolve_record_id(settings, repo, finding), "meta": _parse_meta(pairs), "repoPath": repo}
    answer = call_tool(settings, "triage_decision", _ARGUMENT_FLAGS, **arguments)
    until = f" until {answer['expiresAt']}" if answer["expiresAt"] else ""
    print_answer(answer, lambda answer: f"{answer['status']}{until}: recorded as {answer['recordId']}.")


@triage.command()
@click.argument("finding")
@click.option("--out", "out", metavar="FILE", help="Also write it to this new .json file.")
@click.option("--ann/--no-ann", default=None, help="Rank by meaning too, or by words only.")
@repo_option
@json_command
def pack(settings: Settings, /, finding: str, *, out: str | None, ann: bool | None, repo: str | None) -> None:
    """Collect the context of FINDING: code, history, related findings.

    FINDING is an id or its first characters.

    Examples:
      cleats triage pack 0a4d55a8
      cleats triage pack 0a4d55a8 --out pack.json

    Exits 0  if the finding exists, even without an index,
          1  if it does not exist, or --out cannot be written,
          2  if the arguments are invalid.
    """
    record_id = _resolve_record_id(settings, repo, finding)
    arguments = {"recordId": record_id, "outPath": str(Path.cwd() / out) if out else None, "ann": ann, "repoPath": repo}
    print_answer(call_tool(settings, "triage_context_pack", _ARGUMENT_FLAGS, **arguments), _render_pack)


@triage.command(name="list")
@click.option("--severity", type=click.Choice(SEVERITY_ORDER), help="Minimum severity.")
@click.option("--undecided", is_flag=True, help="List only findings without a valid decision.")
@repo_option
@json_command
def list_(settings: Settings, /, *, severity: str | None, undecided: bool, repo: str | None) -> None:
    """List findings with their decisions, most severe first.

    Examples:
      cleats triage list
      cleats triage list --severity high --undecided
    """
    archive = _open_archive(settings, repo)
    decisions = _current_decisions(archive)
    max_rank = SEVERITY_ORDER.index(severity) if severity else len(SEVERITY_ORDER)
    findings = [
        record
        for record in archive.iter_records("finding")
        if _severity_rank(record) <= max_rank and not (undecided and record.record_id in decisions)
    ]
    findings.sort(key=lambda record: (_severity_rank(record), record.name, record.record_id))
    if is_json_requested():
        documents = []
        for finding in findings:
            location, decision = _format_location(finding) or None, decisions.get(finding.record_id)
            facts = {"title": finding.vuln.title, "location": location, "decision": decision}
            documents.append({**collect_filter_fields(finding), **facts})
        echo_json(documents)
    elif not findings:
        click.echo("No findings. Run `cleats triage ingest` to import some.")
    else:
        rows = [
            (
                finding.record_id[:8],
                finding.vuln.severity or "-",
                finding.name,
                finding.package.name or _format_location(finding) or "-",
                decisions.get(finding.record_id) or finding.status or "-",
                finding.vuln.title,
            )
            for finding in findings
        ]
        head = ("ID", "SEVERITY", "NAME", "WHERE", "STATUS", "TITLE")
        click.echo(format_columns([head, *rows], indent="", cut=True))


@triage.command()
@repo_option
@click.pass_obj
def share(settings: Settings, /, *, repo: str | None) -> None:
    """Copy the records of this machine to the shared database.

    CLEATS_DATABASE_URL names the database. Run this once if you recorded findings before you had the
    database. Records that the database already has and the local files are not changed.

    Examples:
      CLEATS_DATABASE_URL=postgresql://db/cleats cleats triage share
    """
    from cleats.toolsets.code.composition import open_indexes  # noqa: PLC0415 - help needs none of these
    from cleats.toolsets.code.index.options import RECORDS_FOLDER  # noqa: PLC0415
    from cleats.toolsets.code.records.archive import RecordArchive, copy_records  # noqa: PLC0415

    if not settings.database_url:
        raise SettingError("database_url is not set: set CLEATS_DATABASE_URL to the target database")
    indexes = open_indexes(settings)
    try:
        repository = indexes.find_repository(repo)
        local_archive = RecordArchive.from_repository(settings.data_dir / RECORDS_FOLDER, repository)
        count = copy_records(local_archive, indexes.records.open(repository))
    except ToolError as error:
        exit_with_error(error)
    click.echo(f"{format_count(count, 'record')} put there.")


def _parse_meta(pairs: tuple[str, ...]) -> dict[str, str] | None:
    meta = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise click.BadParameter(f"{pair!r} is not KEY=TEXT", param_hint="--meta")
        meta[key] = value
    return meta or None


def _open_archive(settings: Settings, repo: str | None) -> "RecordArchive":
    from cleats.toolsets.code.composition import open_indexes  # noqa: PLC0415 - help needs none of these

    indexes = open_indexes(settings)
    try:
        return indexes.records.open(indexes.find_repository(repo)).refresh()
    except ToolError as error:
        exit_with_error(error)


def _resolve_record_id(settings: Settings, repo: str | None, id_prefix: str) -> str:
    """Return the only record id with this prefix; report an error and exit otherwise."""
    record_ids = _open_archive(settings, repo).find_ids(id_prefix.lower())
    if len(record_ids) != 1:
        count = f"{len(record_ids):,} records begin with" if record_ids else "no record has the id"
        hint = "`cleats triage list` shows the ids of findings."
        exit_with_error(ToolError(ErrorCode.NOT_FOUND, f"FINDING: {count} {id_prefix!r}", hint=hint))
    return record_ids[0]


def _current_decisions(archive: "RecordArchive") -> dict[str, str]:
    from cleats.toolsets.code.triage.decisions import is_expired  # noqa: PLC0415 - help needs none of these

    now = datetime.now(UTC)
    decisions = sorted(archive.iter_records("decision"), key=lambda record: record.created_at)
    newest = {item.decision.finding_record_id: item.decision for item in decisions if item.decision}
    return {key: item.status for key, item in newest.items() if not is_expired(item, now)}


def _format_location(record: TriageRecord) -> str:
    if not record.locations:
        return ""
    first = record.locations[0]
    return f"{first.path}:{first.start_line}" if first.start_line else first.path


def _severity_rank(record: TriageRecord) -> int:
    severity = record.vuln.severity
    return SEVERITY_ORDER.index(severity) if severity in SEVERITY_ORDER else len(SEVERITY_ORDER)


def _render_pack(answer: Mapping[str, Any]) -> list[str]:
    finding = answer["finding"]
    vuln, package = finding.get("vuln", {}), finding.get("package", {})
    rows = [
        ("severity", vuln.get("severity", "")),
        ("package", " ".join(filter(None, (package.get("name"), package.get("installedVersion"))))),
        ("fixed in", package.get("fixedVersion", "")),
        ("record", answer["recordId"]),
    ]
    filled_rows = [(name, value) for name, value in rows if value]
    lines = [style_heading(vuln.get("title") or vuln.get("vulnId", "")), format_columns(filled_rows)]
    for decision in answer["history"]:
        relation = decision["relation"] + (", expired" if decision["expired"] else "")
        reason = decision.get("justification", "")
        lines.append(f"  decided   {decision['status']} (same {relation}) {reason}".rstrip())
    for query in answer["repoEvidence"]["queries"]:
        if query["hits"]:
            lines += ["", style_heading(f"{query['about']} {query['query']} in {query['mode']}")]
            lines += [f"  {hit['file']}:{hit['startLine']}  {hit['name']}" for hit in query["hits"]]
    return lines
