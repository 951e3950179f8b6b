"""`cleats search`: what the tool finds, for people in a terminal."""

import sys
from typing import TYPE_CHECKING, Any

import click

from cleats.cli.printing import echo_json
from cleats.cli.search_options import ByTopic, arguments, options
from cleats.contract.errors import ToolError
from cleats.settings import Settings

if TYPE_CHECKING:
    from cleats.toolsets.code.indexing.access import Indexes
    from cleats.toolsets.code.repository import Repository


@click.command(
    cls=ByTopic,
    params=[click.Argument(["query"], nargs=-1, required=True), *options()],
)
@click.pass_obj
def search(settings: Settings, /, query: tuple[str, ...], **given: Any) -> None:
    """Find code, documents and comments in the index of a repository, best first.

    QUERY is a question, words or a name; "phrases" are required, -word is left out, '*' is
    everything. With AND, OR or NOT in capitals between words it is a formula, with (groups).
    Quote it for your shell; -- comes before one that begins with a minus. Filters narrow the
    search and are combined with AND; without `cleats index` before, or --refresh, there is
    nothing to search.

    \b
    Examples:
      cleats search "where are sessions closed?"
      cleats search Session.close --context 3
      cleats search open --type function --calls open --path 'src/**'
      cleats search '"not found" -test' --path '!tests/**' --lang py --compact
      cleats search parse --refresh --json --compact

    \b
    Exits 0  when something was found,
          1  when nothing was,
          2  when the query is wrong or there is no index.
    """  # noqa: D301 - click reads the backspace
    from cleats.cli.hits import Printer  # noqa: PLC0415 - help needs none of it
    from cleats.cli.search_report import fail, notes, nothing  # noqa: PLC0415

    wanted = arguments(given) | {"query": " ".join(query)}
    printed, compact = given["as_json"], given["as_compact"]
    wanted["output"] = "compact" if compact else "json" if printed else "full"
    try:
        answer, note = _answered(settings, wanted)
    except ToolError as error:
        fail(error, wanted)
    found = any(answer[mode] for mode in ("code", "prose", "extractedProse", "records"))
    if printed:
        stale = [{"code": "index_stale", "message": note}] if note else []
        warnings = [*answer.get("warnings", []), *stale]
        echo_json({**answer, **({"warnings": warnings} if warnings else {})})
        sys.exit(0 if found else 1)
    Printer(answer, wanted, compact=compact, full=given["as_full"]).show()
    for said in (*notes(answer), *([note] if note else [])):
        click.echo(said, err=True)
    if not found:
        click.echo(nothing(answer, wanted), err=True)
    sys.exit(0 if found else 1)


def _answered(settings: Settings, wanted: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The answer, and what is to be said about the index it came from."""
    if wanted.get("workspacePath") or settings.opensearch_url:
        from cleats.cli.asking import asked  # noqa: PLC0415

        return asked(settings, "search", **wanted), ""
    from cleats.contract.binding import Binding  # noqa: PLC0415
    from cleats.toolsets.code.indexing.access import Indexes  # noqa: PLC0415
    from cleats.toolsets.code.indexing.freshness import look  # noqa: PLC0415
    from cleats.toolsets.code.search.arguments import input_schema  # noqa: PLC0415
    from cleats.toolsets.code.search.engine import Engine  # noqa: PLC0415
    from cleats.toolsets.code.search.output import payload  # noqa: PLC0415
    from cleats.toolsets.code.search.places import Roots  # noqa: PLC0415
    from cleats.toolsets.code.search.query import parse  # noqa: PLC0415
    from cleats.toolsets.code.search.request import read  # noqa: PLC0415

    indexes = Indexes(settings)
    parse(wanted["query"])  # an empty one is no mistake in the schema to a person
    given = Binding("search", input_schema()).bind(wanted)
    repository = indexes.repository(wanted.get("repoPath"))
    roots = Roots(repository.root)
    request = read(given, tests_lower=settings.search_tests == "lower", roots=roots)
    if wanted.get("refresh"):
        _refresh(indexes, repository)
    with indexes.lease(repository) as lease:
        engine = Engine.open(lease.folder)
        answer = payload(engine, engine.search(request))
        engine.close()
        fresh, _ = look(repository.root, lease, indexes.options)
    if not fresh.stale:
        return answer, ""
    return answer, f"The index is not up to date: {fresh}. --refresh brings it up to date first."


def _refresh(indexes: "Indexes", repository: "Repository") -> None:
    from msgspec.structs import replace  # noqa: PLC0415

    from cleats.cli.index import Bar  # noqa: PLC0415
    from cleats.toolsets.code.indexing.run import build  # noqa: PLC0415

    shelf, options = indexes.shelf(repository), indexes.options
    if shelf.name() is not None:
        options = replace(options, modes=())  # what the index has, and no more
    bar = Bar(quiet=False)
    try:
        build(repository.root, shelf, options, bar.show)
    finally:
        bar.clear()
