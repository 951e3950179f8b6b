"""Tests of searches in the address of a page, and of how hits are shown."""

from starlette.datastructures import QueryParams

from cleats.console.search_query import group_filter_options, list_filter_options, parse_search
from cleats.console.search_results import MAX_SHOWN_LINES, collect_hits, list_terms
from cleats.contract.tools import Tool, arguments

FLAGS = {"lang": "--lang", "async": "--async", "churnMin": "--churn", "path": "--path", "repoPath": "--repo"}


async def _run_nothing(_arguments: object, _context: object) -> None:
    return None


SEARCH_TOOL = Tool(
    name="search",
    title="Search",
    version=1,
    description="Search.",
    input=arguments(
        {
            "query": {"type": "string"},
            "repoPath": {"type": "string"},
            "lang": {"type": "string"},
            "async": {"type": "boolean"},
            "churnMin": {"type": "integer"},
            "path": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        }
    ),
    run=_run_nothing,
)


def test_a_search_becomes_a_call_and_a_command() -> None:
    params = QueryParams("q=open it's&lang=python&async=true&churnMin=5&path=a&path=b&repo=/r&evil=1&mode=code")
    query = parse_search(params, SEARCH_TOOL, FLAGS)

    assert query.build_arguments(SEARCH_TOOL, "/r") == {
        "query": "open it's",
        "mode": "code",
        "lang": "python",
        "async": True,
        "churnMin": 5,
        "path": ["a", "b"],
        "repoPath": "/r",
    }
    assert query.format_command() == (
        """cleats search 'open it'"'"'s' --mode code --lang python --async --churn 5 --path a --path b --repo /r"""
    )


def test_a_filter_without_a_script_joins_the_others() -> None:
    query = parse_search(QueryParams("q=x&filter=lang&value=go"), SEARCH_TOOL, FLAGS)
    switch = parse_search(QueryParams("q=x&filter=async"), SEARCH_TOOL, FLAGS)

    assert [item.label for item in query.filters] == ["--lang go"]
    assert [item.label for item in switch.filters] == ["--async"]
    assert query.list_pairs(without=query.filters[0]) == [("q", "x")]


def test_common_filters_are_offered_first_and_every_filter_once() -> None:
    options = list_filter_options(SEARCH_TOOL, FLAGS)

    (_, common), (_, others) = group_filter_options(options)

    assert [option.flag for option in common] == ["--lang", "--path"]
    assert [option.flag for option in others] == ["--async", "--churn"]


def test_words_mark_lines_without_their_endings() -> None:
    assert list_terms('parse "requests" -bodies AND parsing') == ["parse", "request", "pars"]
    assert list_terms("where are the orders of a customer") == ["order", "customer"]
    assert list_terms("of") == ["of"]


def test_a_long_hit_shows_its_beginning_and_its_matches() -> None:
    text = "\n".join(f"line {number}" if number != 80 else "the needle" for number in range(100))
    hit = {"file": "a.txt", "startLine": 11, "endLine": 110, "text": text, "score": 1.0, "kind": "function"}

    [shown] = collect_hits({"code": [hit]}, "needle", "")

    numbers = [line.number for segment in shown.segments for line in segment]
    assert len(numbers) == MAX_SHOWN_LINES
    assert {11, 90, 91, 92} <= set(numbers)
    assert [line.number for segment in shown.segments for line in segment if line.is_marked] == [91]
    assert (shown.matched_line, shown.hidden_lines) == (91, 100 - MAX_SHOWN_LINES)


def test_a_headline_that_the_lines_show_is_not_repeated() -> None:
    shown = {"file": "a.py", "startLine": 1, "endLine": 2, "text": "def f():\n    pass", "headline": "def f()"}
    summarised = {**shown, "file": "b.py", "headline": "Return nothing."}
    excerpt = {**shown, "file": "c.txt", "kind": "lines", "name": "c"}

    hits = collect_hits({"code": [shown, summarised, excerpt]}, "pass", "")

    assert [hit.headline for hit in hits] == ["", "Return nothing.", ""]
    assert (hits[2].kind, hits[2].name) == ("", "")


def test_a_comment_inside_a_hit_is_not_shown_twice() -> None:
    outer = {"file": "a.py", "startLine": 1, "endLine": 9, "text": "x", "score": 2.0}
    inner = {"file": "a.py", "startLine": 2, "endLine": 3, "text": "x", "score": 1.0}
    elsewhere = {"file": "b.py", "startLine": 2, "endLine": 3, "text": "x", "score": 3.0}

    hits = collect_hits({"code": [outer], "extractedProse": [inner, elsewhere]}, "x", "")

    assert [(hit.file, hit.start_line) for hit in hits] == [("b.py", 2), ("a.py", 1)]
