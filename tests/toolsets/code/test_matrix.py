"""Every filter of `search`, in every language with the concept: what it finds and what it excludes.

One index of the polyglot shop, with a history of two authors, is searched through the engine. Each
case also holds on the other backends, which must return the same set.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.code.index.options import BuildOptions
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.hit_details import CatalogueReaderPool
from cleats.toolsets.code.search.retrieval import search_generation
from tests.support.indexes import IndexedRepository
from tests.support.polyglot import FILES_BY_LANGUAGE, POLYGLOT_FOLDER, FilterCase, iterate_cases, normalize_name
from tests.support.requirements import requirement

BACKEND_NAMES = ("tantivy", "sqlite-fts", "memory")
MATCH_ALL_QUERY = "-nowheretobefound"
"""A query that every chunk matches, so that only the filter decides."""

OLD_TIMESTAMP = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp())
NEW_TIMESTAMP = int(datetime(2024, 6, 1, tzinfo=UTC).timestamp())


class PolyglotIndex:
    """The open index of the polyglot shop."""

    def __init__(self, folder: Path) -> None:
        self.engine = SearchEngine.open(folder)
        self.details = CatalogueReaderPool(folder)

    def find_names(self, arguments: Mapping[str, Any], backend: str = "tantivy") -> set[str]:
        """Return what a search finds, by file and name."""
        search_arguments = {"query": MATCH_ALL_QUERY, "top": 1000, "backend": backend, **arguments}
        result = search_generation(self.engine, parse_request(search_arguments))
        with self.details.open_reader() as reading:
            rows = [reading.read_row(hit.path, hit.ordinal) for hits in result.hits.values() for hit in hits]
        return {f"{row.path}:{normalize_name(row.name)}" for row in rows}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolyglotIndex]:
    world = IndexedRepository(
        tmp_path_factory.mktemp("shop"), BuildOptions(sqlite=True, workers=1), clock=OLD_TIMESTAMP
    )
    for file in POLYGLOT_FOLDER.iterdir():
        world.write_file(file.name, file.read_bytes())
    world.run_git("init", "--quiet", "--initial-branch", "main")
    world.commit(author="Ada")
    world.clock = NEW_TIMESTAMP
    world.write_file("desk.py", (POLYGLOT_FOLDER / "desk.py").read_text().replace("pass", "self.closed = True"))
    world.commit(author="Grace")
    world.write_file("service.log", "2024-06-01T10:00:00Z ERROR desk order 17 was lost\n" * 3)
    world.write_file("config.toml", '[desk]\nowner = "Ada"\nlimit = 10\n')
    world.build_index()
    with world.lease_current() as lease:
        yield PolyglotIndex(lease.folder)


RELATED_FILES = {"typescript": ["desk.tsx"]}
"""Files that a language's name also covers."""

FILTER_CASES = list(iterate_cases())
FILTER_NAMES = sorted({argument for _lang, argument, _case in FILTER_CASES})


@requirement(*(f"b:search:{name}" for name in FILTER_NAMES), "b:search:lang")
@pytest.mark.parametrize(
    ("lang", "argument", "case"), FILTER_CASES, ids=[f"{lang}-{name}" for lang, name, _case in FILTER_CASES]
)
def test_a_filter_finds_what_it_should_and_leaves_out_the_rest(
    shop: PolyglotIndex, lang: str, argument: str, case: FilterCase
) -> None:
    arguments = {argument: case.value, "lang": lang, "mode": "code"}

    names = shop.find_names(arguments)

    assert f"{FILES_BY_LANGUAGE[lang]}:{case.found}" in names
    assert f"{FILES_BY_LANGUAGE[lang]}:{case.left_out}" not in names
    assert {key.partition(":")[0] for key in names} <= {FILES_BY_LANGUAGE[lang], *RELATED_FILES.get(lang, ())}


@requirement("b:search:calls")
@pytest.mark.parametrize(
    ("lang", "case"), [(lang, case) for lang, argument, case in FILTER_CASES if argument == "uses"]
)
def test_a_name_that_is_used_and_not_called_is_not_found_by_calls(
    shop: PolyglotIndex, lang: str, case: FilterCase
) -> None:
    file = FILES_BY_LANGUAGE[lang]

    users = shop.find_names({"uses": case.value, "lang": lang, "mode": "code"})
    callers = shop.find_names({"calls": case.value, "lang": lang, "mode": "code"})

    assert f"{file}:{case.found}" in users
    assert f"{file}:{case.found}" not in callers


@pytest.mark.parametrize("argument", FILTER_NAMES)
def test_a_filter_gives_the_same_set_on_every_backend(shop: PolyglotIndex, argument: str) -> None:
    for _lang, _argument, case in [row for row in FILTER_CASES if row[1] == argument][:3]:
        sets = [shop.find_names({argument: case.value}, backend) for backend in BACKEND_NAMES]

        assert sets[0] == sets[1] == sets[2]
        assert sets[0]
        assert sets[0] < shop.find_names({})


DAYS_SINCE_2023 = (datetime.now(UTC) - datetime(2023, 1, 1, tzinfo=UTC)).days

FILE_CASES: list[tuple[dict[str, Any], str, str]] = [
    ({"author": "grace"}, "desk.py:tally", "desk.js:tally"),
    ({"author": "ada"}, "desk.js:tally", "desk.py:tally"),
    ({"chunkAuthor": "grace"}, "desk.py:plain", "desk.py:tally"),
    ({"churnMin": 60}, "Desk.cs:tally", "desk.sh:tally"),
    ({"modifiedAfter": "2023-01-01"}, "desk.py:tally", "desk.go:tally"),
    ({"modifiedSince": DAYS_SINCE_2023}, "desk.py:tally", "desk.go:tally"),
    ({"lint": True}, "desk.py:fetchorder", "desk.js:fetchorder"),
    ({"ext": "py"}, "desk.py:tally", "desk.go:tally"),
    ({"ext": [".go", "*.rs"]}, "desk.rs:tally", "desk.py:tally"),
    ({"path": "desk.p"}, "desk.php:tally", "desk.go:tally"),
    ({"path": "**/*.{py,go}"}, "desk.go:tally", "desk.rb:tally"),
    ({"path": "/^desk\\.(rb|rs)$/"}, "desk.rb:tally", "desk.go:tally"),
    ({"file": ["desk.c", "desk.sh"]}, "desk.sh:tally", "desk.go:tally"),
    ({"path": "desk", "file": "desk.go"}, "desk.go:tally", "desk.py:tally"),
    ({"file": "Desk.java", "caseFile": True}, "Desk.java:tally", "desk.py:tally"),
    ({"file": "DESK.GO"}, "desk.go:tally", "desk.py:tally"),
    ({"lang": "c++"}, "desk.cpp:tally", "desk.c:tally"),
    ({"lang": "py,rb"}, "desk.rb:tally", "desk.go:tally"),
    ({"meta": "desk.owner=ada"}, "config.toml:desk", "desk.py:tally"),
    ({"meta": {"desk.owner": "Ada"}}, "config.toml:desk", "desk.py:tally"),
    ({"meta": ["desk.limit"]}, "config.toml:desk", "desk.py:tally"),
    ({"metaJson": {"desk": {"limit": "10"}}}, "config.toml:desk", "desk.py:tally"),
    ({"metaJson": '{"desk.owner": "Ada"}'}, "config.toml:desk", "desk.py:tally"),
    ({"branch": "main"}, "desk.py:tally", ""),
    ({"mode": "code"}, "desk.py:tally", "README.md:refunds"),
    ({"mode": "prose"}, "README.md:refunds", "desk.py:tally"),
    ({"param": "orderId", "lang": "php"}, "desk.php:fetchorder", "desk.php:plain"),
    ({"param": "$orderId"}, "desk.php:fetchorder", "desk.js:fetchorder"),
    ({"type": "FunctionDeclaration", "lang": "py"}, "desk.py:tally", "desk.py:orderdesk"),
]


@requirement(
    *(f"b:search:{name}" for name in sorted({name for arguments, _in, _out in FILE_CASES for name in arguments}))
)
@pytest.mark.parametrize(
    ("arguments", "expected", "left_out"),
    FILE_CASES,
    # Not by their values: what is counted from today is another at midnight, for another worker.
    ids=[f"{' '.join(arguments)} {expected_chunk}" for arguments, expected_chunk, _ in FILE_CASES],
)
def test_what_is_known_of_a_file_narrows_its_chunks(
    shop: PolyglotIndex, arguments: dict[str, Any], expected: str, left_out: str
) -> None:
    sets = [shop.find_names(arguments, backend) for backend in BACKEND_NAMES]

    assert expected in sets[0]
    assert left_out not in sets[0]
    assert sets[0] == sets[1] == sets[2]


@requirement("b:search:case", "b:search:caseFile")
def test_case_makes_paths_and_words_exact(shop: PolyglotIndex) -> None:
    assert shop.find_names({"file": "DESK.GO", "case": True}) == set()
    assert shop.find_names({"file": "DESK.GO", "caseFile": True}) == set()
    assert shop.find_names({"file": "desk.go", "case": True})


@requirement("b:search:case", "b:search:caseTokens")
def test_words_can_be_asked_for_as_they_are_written(shop: PolyglotIndex) -> None:
    loose = shop.find_names({"query": "ordererror", "mode": "code"})
    exact = shop.find_names({"query": "OrderError", "mode": "code", "caseTokens": True})

    assert "desk.py:fetchorder" in loose & exact
    assert shop.find_names({"query": "ordererror", "caseTokens": True, "ann": False}) == set()
    assert shop.find_names({"query": "ordererror", "case": True, "ann": False}) == set()


@requirement("b:search:branch")
def test_another_branch_gives_nothing(shop: PolyglotIndex) -> None:
    assert shop.find_names({"branch": "release"}) == set()
    assert shop.find_names({"branch": "MAIN"}) == shop.find_names({})


@requirement("b:search:mode")
def test_each_mode_has_its_own_chunks(shop: PolyglotIndex) -> None:
    by_mode = {
        mode: shop.find_names({"mode": mode}) for mode in ("code", "prose", "extracted-prose", "records", "both", "all")
    }

    assert by_mode["records"]
    assert by_mode["extracted-prose"] < by_mode["prose"]
    assert by_mode["both"] == by_mode["code"] | by_mode["prose"] == shop.find_names({})
    assert by_mode["all"] == by_mode["both"] | by_mode["records"]


@requirement("b:search:async", "b:search:generator", "b:search:returns", "b:search:lint")
@pytest.mark.parametrize("flag", ["async", "generator", "returns", "lint"])
def test_a_flag_that_is_false_does_not_filter(shop: PolyglotIndex, flag: str) -> None:
    assert shop.find_names({flag: False}) == shop.find_names({})
    assert shop.find_names({flag: True}) < shop.find_names({})


@requirement("b:search:riskTag", "b:search:risk")
def test_the_narrower_risk_argument_counts_when_both_are_given(shop: PolyglotIndex) -> None:
    by_tag, by_other_tag = (shop.find_names({"riskTag": tag}) for tag in ("command-exec", "xss"))

    assert "desk.py:runreport" in by_tag
    assert "desk.py:plain" not in by_tag
    assert by_tag != by_other_tag
    assert shop.find_names({"risk": "xss", "riskTag": "command-exec"}) == by_tag


def test_filters_are_and_ed(shop: PolyglotIndex) -> None:
    both = shop.find_names({"lang": "python", "calls": "lookup"})

    assert both == shop.find_names({"lang": "python"}) & shop.find_names({"calls": "lookup"})
    assert both == {"desk.py:fetchorder"}
