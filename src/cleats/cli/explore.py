"""The commands of the toolset `explore`: find, grep, symbol, references and outline."""

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

import click

from cleats.cli.output import echo_json, escape_controls, is_json_requested, print_page, terminal_options
from cleats.cli.tool_command import call_text_tool, json_command, repo_option
from cleats.settings import Settings

TERMINAL_TOKENS: Final = 4000
"""The token budget of an answer for a person; a pager scrolls the rest."""

_LINE_PATTERN = re.compile(r"^( *)(\d+)([:-])( \[[^\s\]]+\])?(.*)$")
_PLACE_PATTERN = re.compile(r"^ (\d+-\d+ )(\w+ )(\S+)(.*)$")

_tokens_option = click.option(
    "--tokens",
    type=click.IntRange(200, 20_000),
    default=TERMINAL_TOKENS,
    show_default=True,
    help="Maximum size of the answer in tokens.",
)
_offset_option = click.option("--offset", type=click.IntRange(0), help="Skip this many results.")
_path_option = click.option("--path", metavar="PATH", help="Search only this folder, file or glob.")


def _explore_options(command: Callable[..., Any]) -> Callable[..., Any]:
    return terminal_options(_tokens_option(repo_option(json_command(command))))


@click.command()
@click.argument("query", nargs=-1, required=True)
@_path_option
@click.option("--language", metavar="NAME", help="Only this language, such as python.")
@click.option("--kind", metavar="KIND", help="Only this kind of declaration: function, method, class, ...")
@click.option("-n", "--limit", type=click.IntRange(1, 50), default=5, show_default=True, help="Number of results.")
@_offset_option
@_explore_options
def find(settings: Settings, query: tuple[str, ...], **arguments: Any) -> None:
    """Find code by what it does: QUERY is a question, a name or an error message.

    Without an index, the command reads the files. With one (`cleats index`), it also finds code by meaning.

    Examples:
      cleats find where is the session cookie signed
      cleats find "connection reset by peer" --path src
      cleats find parse_config --kind function -n 1
    """
    _print_answer(settings, "find_code", _match_words(query), query=" ".join(query), **arguments)


@click.command()
@click.argument("pattern")
@_path_option
@click.option("-e", "--regex", is_flag=True, default=None, help="Read PATTERN as a regular expression.")
@click.option(
    "-i", "--ignore-case", is_flag=True, default=None, help="Ignore case. [default: if PATTERN is lower case]"
)
@click.option("-l", "--files", "files_only", is_flag=True, default=None, help="List only the files, with counts.")
@click.option("-C", "--context", type=click.IntRange(0, 20), help="Number of lines before and after each match.")
@_offset_option
@_explore_options
def grep(settings: Settings, pattern: str, **arguments: Any) -> None:
    """Find every line with PATTERN, each with its enclosing function.

    Searches the current files, except those that git ignores.

    Examples:
      cleats grep "raise ValueError" --path src
      cleats grep -e "def test_[a-z]+_timeout" -l
    """
    matched = pattern if arguments["regex"] else re.escape(pattern)
    _print_answer(settings, "grep_code", matched, pattern=pattern, **arguments)


@click.command()
@click.argument("name")
@_path_option
@_explore_options
def symbol(settings: Settings, name: str, **arguments: Any) -> None:
    """Show the source of the function, class or method NAME.

    Examples:
      cleats symbol Session.close
      cleats symbol close --path src/http
    """
    _print_answer(settings, "read_symbol", name=name, **arguments)


@click.command()
@click.argument("name")
@click.option("--callees", "direction", flag_value="callees", help="List what NAME calls.")
@click.option(
    "--kind",
    type=click.Choice(["call", "use", "import", "subclass", "override", "mention"]),
    help="Only this kind of use.",
)
@_path_option
@_offset_option
@_explore_options
def references(settings: Settings, name: str, **arguments: Any) -> None:
    """Show where NAME is called, used, imported, subclassed or overridden.

    Examples:
      cleats references url_for --kind call
      cleats references Flask.wsgi_app --callees
    """
    _print_answer(settings, "find_references", _match_words([re.split(r"\W", name)[-1]]), name=name, **arguments)


@click.command()
@click.argument("path", required=False)
@_explore_options
def outline(settings: Settings, path: str | None, **arguments: Any) -> None:
    """List the declarations of a file, or map a folder or the repository.

    Examples:
      cleats outline
      cleats outline src/app.py
    """
    _print_answer(settings, "outline", path=path, **arguments)


def _match_words(words: Iterable[str]) -> str:
    """Return a regular expression for the words of a question that are not too short to stand out."""
    long_words = [re.escape(word) for text in words for word in re.findall(r"\w{3,}", text)]
    return rf"\b(?:{'|'.join(long_words)})" if long_words else ""


def _print_answer(settings: Settings, tool: str, matched: str = "", **arguments: Any) -> None:
    """Print the answer of a tool; the regular expression `matched` says which parts of its lines to mark."""
    text = call_text_tool(settings, tool, **arguments)
    if is_json_requested():
        echo_json({"ok": True, "answer": text})
        return
    if sys.stdout.isatty():  # a file may have the escape sequences of a terminal in it
        text = "\n".join(escape_controls(line.expandtabs(4)) for line in text.split("\n"))
    print_page(_style_answer(text, matched))


def _style_answer(text: str, matched: str) -> str:
    try:
        pattern = re.compile(matched, re.IGNORECASE) if matched else None
    except re.error:  # ripgrep knows expressions that Python does not
        pattern = None
    first, *rest = text.split("\n")
    return "\n".join([click.style(first, dim=True), *(_style_line(line, pattern) for line in rest)])


def _style_line(line: str, pattern: re.Pattern[str] | None) -> str:
    if place_match := _PLACE_PATTERN.match(line):
        place, kind, name, reason = place_match.groups()
        return f" {place}{kind}{click.style(name, bold=True)}{click.style(reason, dim=True)}"
    if line_match := _LINE_PATTERN.match(line):
        indent, number, separator, owner, code = line_match.groups()
        if pattern is not None and separator == ":":
            code = pattern.sub(lambda match: click.style(match[0], fg="red", bold=True) if match[0] else "", code)
        return f"{indent}{click.style(number, fg='green')}{separator}{click.style(owner or '', dim=True)}{code}"
    return line if line.startswith(" ") else click.style(line, fg="magenta")
