"""The `cleats search` command: run the search tool for a person, and print its hits."""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from cleats.cli.output import ProgressPrinter, echo_json, is_json_requested, print_page, terminal_options
from cleats.cli.tool_command import replace_argument_names
from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.toolsets.code.query.arguments import ARGUMENTS_BY_NAME, SEARCH_ARGUMENTS, TOPIC_TITLES, SearchArgument

if TYPE_CHECKING:
    from cleats.toolsets.code.index.service import Indexes
    from cleats.toolsets.code.repository import Repository

PARAMETER_PREFIX = "given_"
"""The prefix of parameter names, because some arguments are named like Python keywords."""


CLI_DESCRIPTIONS: Final = {
    "ann": "Rank by meaning too, or by words only. [default: by meaning too]",
    "mode": "What to search: code, prose (documents and comments), extracted-prose (comments), records (findings and "
    "logs), both (all but records) or all. [default: both]",
    "repoPath": "Repository. [default: the one that contains the current folder]",
    "top": "Maximum number of hits; with --json, per mode. [default: 10]",
    "workspacePath": "Search the repositories that this file lists; see `cleats workspace`.",
    "case": "The same as --case-tokens --case-file.",
    "caseTokens": "Match the case of words.",
    "caseFile": "Match the case of paths.",
    "backend": "Ranking engine; auto selects tantivy. [default: auto]",
    "refresh": "Update the index before the search.",
    "branch": "Return hits only if the index was built from this branch.",
    "signature": "Text in the signature; case-sensitive.",
    "param": "Complete name of a parameter.",
    "decorator": "Text in a decorator.",
    "extends": "Text in the name of a base class.",
    "inferredType": "Text in a type, declared or inferred.",
    "returnType": "Text in the declared return type.",
    "async": "Only asynchronous functions.",
    "generator": "Only generators.",
    "returns": "Only functions that return a value.",
    "import": "Module that the file imports; os also matches os.path.",
    "chunkAuthor": "Author of the lines of the hit.",
    "churnMin": "At least this many lines added or removed in the history of the file.",
    "calls": "Code that calls this function; get also matches session.get.",
    "uses": "Code that refers to this name.",
    "reads": "Code that reads a variable with this text in its name.",
    "writes": "Code that assigns to a variable with this text in its name.",
    "mutates": "Code that changes an object with this text in its name.",
    "alias": "Text in an alias, which is written as name=other.",
    "awaits": "Code that awaits something with this text in its name.",
    "throws": "Code that throws or raises an error with this text in its name.",
    "risk": "Text in a risk tag.",
    "riskTag": "The same as --risk.",
    "riskSource": "Text in the name of the source of a risk flow.",
    "riskSink": "Text in the name of the sink of a risk flow.",
    "riskCategory": "Text in the category of a risk.",
    "riskFlow": "Text in a risk flow, which is written as source->sink.",
    "modifiedAfter": "Committed on or after this date, such as 2026-01-31.",
    "lint": "Only code with linter findings.",
    "meta": "Field of a record: key=text, or key for any value.",
    "metaJson": "The same as --meta, as JSON.",
    "context": "Show the text of each hit with this many lines before and after it.",
    "explain": "Show how each score was computed.",
}
"""Descriptions that differ between a person and an agent."""

OPTION_ALIASES: Final = {"lang": "--language", "type": "--kind", "top": "--limit"}
"""Options that `cleats find` has for the same filters."""


class GroupedOptionsCommand(click.Command):
    """A command that lists its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records_by_topic: dict[Any, list[tuple[str, str]]] = {topic: [] for topic in TOPIC_TITLES}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                argument = ARGUMENTS_BY_NAME.get((param.name or "").removeprefix(PARAMETER_PREFIX))
                records_by_topic[argument.topic if argument else "results"].append(record)
        for topic, records in records_by_topic.items():
            with formatter.section(TOPIC_TITLES[topic]):
                formatter.write_dl(records)


def build_options() -> list[click.Option]:
    """Build an option for each argument that has a flag."""
    return [option for argument in SEARCH_ARGUMENTS if argument.flag for option in _build_argument_options(argument)]


def _build_argument_options(argument: SearchArgument) -> Iterator[click.Option]:
    if argument.name == "output":
        yield _build_switch("compact", "Print one line per hit.")
        yield _build_switch("full", "Show all facts and the full text of each hit.")
        yield _build_switch("json", "Print JSON; with --compact a shorter form.")
        return
    names = [argument.flag] if argument.name == "ann" else argument.flag.split("/")
    flags = {other.name: other.flag.split("/")[-1] for other in SEARCH_ARGUMENTS if other.flag}
    about = CLI_DESCRIPTIONS.get(argument.name) or replace_argument_names(argument.description, flags)
    settings = _click_option_settings(argument.schema)
    aliases = [OPTION_ALIASES[argument.name]] if argument.name in OPTION_ALIASES else []
    yield click.Option([*names, *aliases, PARAMETER_PREFIX + argument.name], help=about, **settings)


def _build_switch(name: str, about: str) -> click.Option:
    return click.Option([f"--{name}", f"as_{name}"], is_flag=True, help=about)


def _click_option_settings(schema: Mapping[str, Any]) -> dict[str, Any]:
    if "enum" in schema:
        return {"type": click.Choice(schema["enum"])}
    options = [option["type"] for option in schema.get("anyOf", ())]
    kind = options or schema["type"]
    if "array" in kind:
        return {"multiple": True, "metavar": "TEXT"}
    if "boolean" in kind:
        return {"default": None} | ({"is_flag": True} if kind == "boolean" else {})
    if kind == "integer":
        return {"type": click.IntRange(schema.get("minimum"), schema.get("maximum"))}
    return {"type": click.FloatRange(0)} if kind == "number" else {"metavar": "TEXT"}


def collect_arguments(option_values: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the arguments of the tool from the values that click parsed."""
    tool_arguments: dict[str, Any] = {}
    for name, value in option_values.items():
        if name.startswith(PARAMETER_PREFIX) and value not in (None, ()):
            tool_arguments[name.removeprefix(PARAMETER_PREFIX)] = list(value) if isinstance(value, tuple) else value
    if json_texts := tool_arguments.get("metaJson"):
        # Several JSON texts become one array, which the tool validates.
        tool_arguments["metaJson"] = json_texts[0] if len(json_texts) == 1 else f"[{','.join(json_texts)}]"
    return tool_arguments


@click.command(cls=GroupedOptionsCommand, params=[click.Argument(["query"], nargs=-1, required=True), *build_options()])
@terminal_options
@click.pass_obj
def search(settings: Settings, /, query: tuple[str, ...], **option_values: Any) -> None:
    """Find code, documents and comments in the index of a repository, best first.

    QUERY is a question, words or a name. A "phrase" must occur, -word must not, '*' matches everything; AND,
    OR, NOT in capitals and (groups) combine terms. Quote the query for your shell, and write -- before a
    query that starts with a minus. Filters are combined with AND. Run `cleats index` first, or use --refresh.

    Examples:
      cleats search "where are sessions closed?"
      cleats search Session.close --context 3
      cleats search open --type function --calls open --path 'src/**'
      cleats search '"not found" -test' --path '!tests/**' --lang py --compact
      cleats search parse --refresh --json --compact

    Exits 0  if something was found,
          1  if nothing was found,
          2  if the query is invalid or there is no index.
    """
    tool_arguments = collect_arguments(option_values) | {"query": " ".join(query)}
    as_json, compact = option_values["as_json"], option_values["as_compact"]
    tool_arguments["output"] = "compact" if compact else "json" if as_json else "full"
    try:
        answer, note = _run_search(settings, tool_arguments)
    except ToolError as error:
        exit_with_search_error(error, tool_arguments)
    has_hits = any(answer[mode] for mode in ("code", "prose", "extractedProse", "records"))
    if as_json:
        stale = [{"code": "index_stale", "message": note}] if note else []
        warnings = [*answer.get("warnings", []), *stale]
        echo_json({**answer, **({"warnings": warnings} if warnings else {})})
        sys.exit(0 if has_hits else 1)
    from cleats.cli.hit_printer import HitPrinter  # noqa: PLC0415 - help needs none of it

    notes = [*list_notes(answer), *([note] if note else [])]
    if not has_hits:
        notes.append(explain_no_hits(answer, tool_arguments))
    print_page(HitPrinter(answer, tool_arguments, compact=compact, full=option_values["as_full"]).render(), notes)
    sys.exit(0 if has_hits else 1)


def _run_search(settings: Settings, tool_arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
    if tool_arguments.get("workspacePath") or settings.code.opensearch_url:
        from cleats.cli.tool_command import call_tool  # noqa: PLC0415

        return call_tool(settings, "search", **tool_arguments), ""
    from cleats.contract.arguments import ArgumentBinder  # noqa: PLC0415
    from cleats.toolsets.code.composition import open_indexes  # noqa: PLC0415
    from cleats.toolsets.code.index.freshness import check_generation  # noqa: PLC0415
    from cleats.toolsets.code.query.arguments import make_input_schema  # noqa: PLC0415
    from cleats.toolsets.code.query.parser import parse_query  # noqa: PLC0415
    from cleats.toolsets.code.query.request import SearchRoots, parse_request  # noqa: PLC0415
    from cleats.toolsets.code.search.engine import SearchEngine  # noqa: PLC0415
    from cleats.toolsets.code.search.notes import limit_answer  # noqa: PLC0415
    from cleats.toolsets.code.search.output import render_answer  # noqa: PLC0415
    from cleats.toolsets.code.search.retrieval import search_generation  # noqa: PLC0415

    indexes = open_indexes(settings)
    parse_query(tool_arguments["query"])  # report an empty query as such, not as a schema violation
    bound_arguments = ArgumentBinder("search", make_input_schema()).bind(tool_arguments)
    repository = indexes.find_repository(tool_arguments.get("repoPath"))
    roots = SearchRoots(repository.root)
    request = parse_request(bound_arguments, demote_tests=settings.code.search_tests == "lower", roots=roots)
    if tool_arguments.get("refresh"):
        _refresh_index(indexes, repository)
    with indexes.lease_index(repository) as lease:
        engine = SearchEngine.open(lease.folder)
        answer = limit_answer(render_answer(engine, search_generation(engine, request)))
        engine.close()
        freshness, _ = check_generation(repository.root, lease, indexes.options)
    if not freshness.is_stale:
        return answer, ""
    return answer, f"The index is not up to date: {freshness}. Use --refresh to update it first."


def _refresh_index(indexes: "Indexes", repository: "Repository") -> None:
    from msgspec.structs import replace  # noqa: PLC0415

    from cleats.toolsets.code.index.build import build_index  # noqa: PLC0415

    generation_store, options = indexes.open_store(repository), indexes.options
    if generation_store.read_current_name() is not None:
        options = replace(options, modes=())  # update only the modes that the index has
    with ProgressPrinter(outside_terminal=False) as bar:
        build_index(repository.root, generation_store, options, bar.show_build)


EMPTY_RESULT_CODES: Final = frozenset({"index_empty", "filtered_out"})
"""The codes of notes that explain an empty result; `explain_no_hits` words them for the command line."""


def list_notes(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the notes of an answer that a person should know."""
    notes = answer["stats"].get("notes", [])
    return (note["message"] for note in notes if note["code"] not in EMPTY_RESULT_CODES)


def explain_no_hits(answer: Mapping[str, Any], tool_arguments: Mapping[str, Any]) -> str:
    """Explain why nothing was found."""
    stats = answer["stats"]
    if stats.get("branchMatch") is False:
        index_branch = f"from branch {stats['branch']}" if stats["branch"] else "without a branch"
        return f"No results: the index was built {index_branch}, not from {stats['branchFilter']}."
    if not stats["chunks"]:
        return "No results: the index is empty."
    if considered_count := sum(stats["considered"].values()):
        return f"No match among {considered_count:,} chunks."
    if "filters" not in stats:
        return f"No results: the index has no chunk of --mode {tool_arguments.get('mode', 'both')}."
    return "\n".join(["No results: no chunk passes the filters.", *_describe_filters(stats, tool_arguments)])


def _describe_filters(stats: Mapping[str, Any], tool_arguments: Mapping[str, Any]) -> Iterator[str]:
    for filter_stats in stats["filters"]:
        value = tool_arguments.get(filter_stats["argument"])
        values = value if isinstance(value, list) else [value]
        value_text = "" if value is True else " " + " ".join(map(str, values))
        chunks = f"{filter_stats['chunks']:,} chunks match it" if filter_stats["chunks"] != 1 else "1 chunk has it"
        known_values = f"; there is {', '.join(filter_stats['known'])}" if filter_stats.get("known") else ""
        yield f"  {_find_flag(filter_stats['argument'])}{value_text}: {chunks}{known_values}"


def _find_flag(argument: str) -> str:
    row = ARGUMENTS_BY_NAME.get(argument)
    return row.flag.split("/")[-1] if row and row.flag else argument


def exit_with_search_error(error: ToolError, tool_arguments: Mapping[str, Any]) -> NoReturn:
    """Print an error in terms of the command line, and exit."""
    if is_json_requested():
        echo_json({"ok": False, "error": error.as_json()})
        sys.exit(2)
    query = tool_arguments["query"]
    position = getattr(error, "position", None)
    if position is not None and query.strip() and "\n" not in query:
        click.echo(f"  {query}\n  {' ' * position}^", err=True)
    argument_names = [str(detail.get("instancePath", "")).lstrip("/") for detail in error.details or ()]
    flags = {name: _find_flag(name) for name in argument_names if name in ARGUMENTS_BY_NAME}
    click.echo(f"Error: {replace_argument_names(error.message, flags)}", err=True)
    hint = error.hint
    if error.code is ErrorCode.NO_INDEX and "backend" in argument_names:
        hint = "Run `cleats sqlite build` first, or omit --backend."
    elif error.code is ErrorCode.NO_INDEX and "--full" in error.hint:
        hint = "Run `cleats index --full`; an update does not read unchanged files."
    elif error.code is ErrorCode.NO_INDEX:
        hint = "Run `cleats index` first, or search with --refresh."
    if hint:
        click.echo(hint, err=True)
    sys.exit(2)
