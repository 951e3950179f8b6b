"""`cleats triage`: take in what scanners found, decide about it, and pack what there is to know."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cleats.cli.asking import asked, fail, json_option
from cleats.cli.printing import columns, counted, echo_json, heading
from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import SettingError, Settings
from cleats.toolsets.code.triage.shapes import DECISION_ARGUMENTS, SOURCES

if TYPE_CHECKING:
    from cleats.toolsets.code.triage.archive import Archive
    from cleats.toolsets.code.triage.records import Record

SEVERITIES = ("critical", "high", "medium", "low", "info", "none")

_FLAGS = {
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
"""What the arguments of the tools are called here."""

_repo = click.option("--repo", metavar="DIR", help="The repository; that around here without it.")
_meta = click.option(
    "--meta", "pairs", multiple=True, metavar="KEY=TEXT", help="To note on the record; repeatable."
)


@click.group()
def triage() -> None:
    """Keep what scanners find in a repository, and what was decided about it.

    Findings become records with lasting ids; to take in the same report again changes nothing.
    `cleats search --mode records` finds them once they are in the index.

    \b
    Examples:
      cleats triage ingest sarif bandit.sarif --index
      cleats triage list --severity high
      cleats triage pack 0a4d55a8
      cleats triage decide 0a4d55a8 accept --because "not reachable" --expires 2027-01-31
    """  # noqa: D301 - click reads the backspace


@triage.command()
@click.argument("source", type=click.Choice(SOURCES), metavar="SOURCE")
@click.argument("file", type=click.Path())
@_meta
@click.option("--index", "build", is_flag=True, help="Bring the index up to date afterwards.")
@_repo
@json_option
@click.pass_obj
def ingest(
    settings: Settings,
    /,
    source: str,
    file: str,
    *,
    pairs: tuple[str, ...],
    build: bool,
    repo: str | None,
    as_json: bool,
) -> None:
    """Take in FILE, which SOURCE wrote: JSON, or JSON on each line.

    SOURCE is dependabot, aws_inspector, sarif, osv, pip_audit, npm_audit, cyclonedx, generic or
    manual.

    \b
    Examples:
      cleats triage ingest sarif bandit.sarif --index
      pip-audit -f json > audit.json; cleats triage ingest pip_audit audit.json

    \b
    Exits 0  when it was taken in, though perhaps not every line of it,
          1  when there is no such file, or no room for records,
          2  when it is not JSON, not what SOURCE writes, or records may not be written.
    """  # noqa: D301
    done = asked(
        settings,
        "triage_ingest",
        _FLAGS,
        source=source,
        inputPath=str(Path.cwd() / file),
        meta=_read(pairs),
        buildIndex=build or None,
        repoPath=repo,
    )
    if as_json:
        echo_json(done)
        return
    counts = ((done[key], key) for key in ("created", "updated", "unchanged"))
    said = ", ".join(f"{count:,} {word}" for count, word in counts if count) or "none taken in"
    click.echo(f"{counted(done['total'], 'finding')}{f': {said}' if done['total'] else ''}.")
    for error in done["errorDetails"]:
        click.echo(f"  {error['index']}: {error['message']}", err=True)
    if done["errors"] > len(done["errorDetails"]):
        click.echo(f"  ... {done['errors']:,} errors in all", err=True)


@triage.command()
@click.argument("finding")
@click.argument("status", type=click.Choice(DECISION_ARGUMENTS["status"]["enum"]))
@click.option("--because", "justification", metavar="TEXT", help="Why.")
@click.option("--code", "codes", multiple=True, help="A justification by its code; repeatable.")
@click.option("--evidence", multiple=True, help="A path, a link, a commit; repeatable.")
@click.option("--reviewer", help="Who decided.")
@click.option("--expires", metavar="DATE", help="The last day on which it holds: 2027-01-31.")
@_meta
@_repo
@json_option
@click.pass_obj
def decide(
    settings: Settings,
    /,
    finding: str,
    status: str,
    *,
    pairs: tuple[str, ...],
    repo: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Record a decision about FINDING: an id, or its beginning.

    \b
    Examples:
      cleats triage decide 0a4d55a8 fix
      cleats triage decide 0a4d55a8 accept --because "not reachable" --expires 2027-01-31

    \b
    Exits 0  when it is recorded,
          1  when there is no such finding,
          2  when a date makes no sense.
    """  # noqa: D301
    named = {
        key: list(value) if isinstance(value, tuple) else value for key, value in given.items()
    }
    done = asked(
        settings,
        "triage_decision",
        _FLAGS,
        finding=_whole(settings, repo, finding),
        status=status,
        meta=_read(pairs),
        repoPath=repo,
        **{key: value for key, value in named.items() if value},
    )
    if as_json:
        echo_json(done)
        return
    until = f" until {done['expiresAt']}" if done["expiresAt"] else ""
    click.echo(f"{done['status']}{until}: recorded as {done['recordId']}.")


@triage.command()
@click.argument("finding")
@click.option("--out", "out", metavar="FILE", help="Write it there too: a new .json file.")
@click.option("--ann/--no-ann", default=None, help="Whether meaning counts in every question.")
@_repo
@json_option
@click.pass_obj
def pack(
    settings: Settings,
    /,
    finding: str,
    *,
    out: str | None,
    ann: bool | None,
    repo: str | None,
    as_json: bool,
) -> None:
    """Collect what there is to know about FINDING.

    FINDING is an id, or its beginning.

    \b
    Examples:
      cleats triage pack 0a4d55a8
      cleats triage pack 0a4d55a8 --out pack.json

    \b
    Exits 0  when there is such a finding, also without an index,
          1  when there is none, or --out may not be written,
          2  when it makes no sense.
    """  # noqa: D301
    made = asked(
        settings,
        "triage_context_pack",
        _FLAGS,
        recordId=_whole(settings, repo, finding),
        outPath=str(Path.cwd() / out) if out else None,
        ann=ann,
        repoPath=repo,
    )
    if as_json:
        echo_json(made)
    else:
        click.echo("\n".join(_packed(made)))


@triage.command(name="list")
@click.option("--severity", type=click.Choice(SEVERITIES), help="At least as bad as this.")
@click.option("--undecided", is_flag=True, help="Only those without a decision that holds.")
@_repo
@json_option
@click.pass_obj
def list_(
    settings: Settings, /, *, severity: str | None, undecided: bool, repo: str | None, as_json: bool
) -> None:
    """List findings, the worst first, with what was decided.

    \b
    Examples:
      cleats triage list
      cleats triage list --severity high --undecided
    """  # noqa: D301 - click reads the backspace
    archive = _archive(settings, repo)
    decided = _standing(archive)
    most = SEVERITIES.index(severity) if severity else len(SEVERITIES)
    found = [
        record
        for record in archive.records("finding")
        if _rank(record) <= most and not (undecided and record.record_id in decided)
    ]
    found.sort(key=lambda record: (_rank(record), record.name, record.record_id))
    if as_json:
        from cleats.toolsets.code.triage.records import fields  # noqa: PLC0415

        echo_json(
            [
                {
                    **fields(each),
                    "title": each.vuln.title,
                    "location": _place(each) or None,
                    "decision": decided.get(each.record_id),
                }
                for each in found
            ]
        )
    elif not found:
        click.echo("No findings. `cleats triage ingest` takes them in.")
    else:
        rows = [
            (
                each.record_id[:8],
                each.vuln.severity or "-",
                each.name,
                each.package.name or _place(each) or "-",
                decided.get(each.record_id) or each.status or "-",
                each.vuln.title,
            )
            for each in found
        ]
        head = ("ID", "SEVERITY", "NAME", "WHERE", "STATUS", "TITLE")
        click.echo(columns([head, *rows], indent="", cut=True))


@triage.command()
@_repo
@click.pass_obj
def share(settings: Settings, /, *, repo: str | None) -> None:
    """Put the records of this machine into the shared database.

    CLEATS_DATABASE_URL names it. This is for whoever kept records before there was one. What the
    database knows already stays as it is there, and the files stay where they are.

    \b
    Examples:
      CLEATS_DATABASE_URL=postgresql://db/cleats cleats triage share
    """  # noqa: D301 - click reads the backspace
    from cleats.toolsets.code.indexing.access import Indexes  # noqa: PLC0415 - help needs none
    from cleats.toolsets.code.indexing.options import RECORDS  # noqa: PLC0415
    from cleats.toolsets.code.triage.archive import Archive  # noqa: PLC0415
    from cleats.toolsets.code.triage.keeping import hand_over  # noqa: PLC0415

    if not settings.database_url:
        raise SettingError("database_url: say which database gets them (CLEATS_DATABASE_URL)")
    indexes = Indexes(settings)
    try:
        repository = indexes.repository(repo)
        mine = Archive.of(settings.data_dir / RECORDS, repository)
        count = hand_over(mine, indexes.records(repository))
    except ToolError as error:
        fail(error)
    click.echo(f"{counted(count, 'record')} put there.")


def _read(pairs: tuple[str, ...]) -> dict[str, str] | None:
    meta = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise click.BadParameter(f"{pair!r} is not KEY=TEXT", param_hint="--meta")
        meta[key] = value
    return meta or None


def _archive(settings: Settings, repo: str | None) -> "Archive":
    from cleats.toolsets.code.indexing.access import Indexes  # noqa: PLC0415

    indexes = Indexes(settings)
    try:
        return indexes.records(indexes.repository(repo)).current()
    except ToolError as error:
        fail(error)


def _whole(settings: Settings, repo: str | None, beginning: str) -> str:
    """The id that begins so, if it is the only one; leaves with a word on stderr otherwise."""
    found = _archive(settings, repo).beginning(beginning.lower())
    if len(found) != 1:
        many = f"{len(found):,} records begin with {beginning!r}"
        what = many if found else f"there is no record {beginning!r}"
        hint = "`cleats triage list` shows the ids of findings."
        fail(ToolError(ErrorCode.NOT_FOUND, f"FINDING: {what}", hint=hint))
    return found[0]


def _standing(archive: "Archive") -> dict[str, str]:
    """The newest decision about each finding that still holds."""
    from cleats.toolsets.code.triage.decisions import expired  # noqa: PLC0415

    now = datetime.now(UTC)
    made = sorted(archive.records("decision"), key=lambda record: record.created_at)
    newest = {each.decision.finding_record_id: each.decision for each in made if each.decision}
    return {key: each.status for key, each in newest.items() if not expired(each, now)}


def _place(record: "Record") -> str:
    """Where a scanner pointed at first, as editors take it; empty when it named no file."""
    if not record.locations:
        return ""
    first = record.locations[0]
    return f"{first.path}:{first.start_line}" if first.start_line else first.path


def _rank(record: "Record") -> int:
    severity = record.vuln.severity
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def _packed(made: Mapping[str, Any]) -> list[str]:
    finding = made["finding"]
    vuln, package = finding.get("vuln", {}), finding.get("package", {})
    rows = [
        ("severity", vuln.get("severity", "")),
        ("package", " ".join(filter(None, (package.get("name"), package.get("installedVersion"))))),
        ("fixed in", package.get("fixedVersion", "")),
        ("record", made["recordId"]),
    ]
    shown = [(name, value) for name, value in rows if value]
    lines = [heading(vuln.get("title") or vuln.get("vulnId", "")), columns(shown)]
    for each in made["history"]:
        over = ", expired" if each["expired"] else ""
        why = each.get("justification", "")
        lines.append(f"  decided   {each['status']} (same {each['relation']}{over}) {why}".rstrip())
    for query in made["repoEvidence"]["queries"]:
        if query["hits"]:
            lines += ["", heading(f"{query['about']} {query['query']} in {query['mode']}")]
            lines += [f"  {h['file']}:{h['startLine']}  {h['name']}" for h in query["hits"]]
    return lines
