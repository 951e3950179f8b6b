"""Every filter of `search`, in every language that has the concept: what it finds and leaves out.

One index of the polyglot shop, with a history of two authors, asked through the engine. Each case
also holds on the other backends, which must give the same set.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.search.details import Details
from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.request import read
from tests.index_world import World
from tests.polyglot import FILES, FOLDER, Case, cases, plain
from tests.requirements import requirement

BACKENDS = ("tantivy", "sqlite-fts", "memory")
EVERYTHING = "-nowheretobefound"
"""A query that every chunk passes, so that only the filter decides."""

OLD = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp())
NEW = int(datetime(2024, 6, 1, tzinfo=UTC).timestamp())


class Shop:
    """The index, open."""

    def __init__(self, folder: Path) -> None:
        self.engine = Engine.open(folder)
        self.details = Details(folder)

    def names(self, arguments: Mapping[str, Any], backend: str = "tantivy") -> set[str]:
        """What is found, by file and name."""
        asked = {"query": EVERYTHING, "top": 1000, "backend": backend, **arguments}
        found = self.engine.search(read(asked))
        with self.details.reading() as reading:
            rows = [
                reading.row(hit.path, hit.ordinal) for hits in found.hits.values() for hit in hits
            ]
        return {f"{row.path}:{plain(row.name)}" for row in rows}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    world = World(tmp_path_factory.mktemp("shop"), Options(sqlite=True, workers=1), clock=OLD)
    for file in FOLDER.iterdir():
        world.write(file.name, file.read_bytes())
    world.git("init", "--quiet", "--initial-branch", "main")
    world.commit(author="Ada")
    world.clock = NEW
    world.write("desk.py", (FOLDER / "desk.py").read_text().replace("pass", "self.closed = True"))
    world.commit(author="Grace")
    world.write("service.log", "2024-06-01T10:00:00Z ERROR desk order 17 was lost\n" * 3)
    world.write("config.toml", '[desk]\nowner = "Ada"\nlimit = 10\n')
    world.build()
    with world.lease() as lease:
        yield Shop(lease.folder)


RELATED = {"typescript": ["desk.tsx"]}
"""Files that a language's name also means."""

ROWS = list(cases())
NARROWING = sorted({argument for _lang, argument, _case in ROWS})


@requirement(*(f"b:search:{name}" for name in NARROWING), "b:search:lang")
@pytest.mark.parametrize(
    ("lang", "argument", "case"), ROWS, ids=[f"{lang}-{name}" for lang, name, _case in ROWS]
)
def test_a_filter_finds_what_it_should_and_leaves_out_the_rest(
    shop: Shop, lang: str, argument: str, case: Case
) -> None:
    arguments = {argument: case.value, "lang": lang, "mode": "code"}

    found = shop.names(arguments)

    assert f"{FILES[lang]}:{case.found}" in found
    assert f"{FILES[lang]}:{case.left_out}" not in found
    assert {each.partition(":")[0] for each in found} <= {FILES[lang], *RELATED.get(lang, ())}


@pytest.mark.parametrize("argument", NARROWING)
def test_a_filter_gives_the_same_set_on_every_backend(shop: Shop, argument: str) -> None:
    for _lang, _argument, case in [row for row in ROWS if row[1] == argument][:3]:
        sets = [shop.names({argument: case.value}, backend) for backend in BACKENDS]

        assert sets[0] == sets[1] == sets[2]
        assert sets[0]
        assert sets[0] < shop.names({})


DAYS = (datetime.now(UTC) - datetime(2023, 1, 1, tzinfo=UTC)).days

FILE_CASES: list[tuple[dict[str, Any], str, str]] = [
    ({"author": "grace"}, "desk.py:tally", "desk.js:tally"),
    ({"author": "ada"}, "desk.js:tally", "desk.py:tally"),
    ({"chunkAuthor": "grace"}, "desk.py:plain", "desk.py:tally"),
    ({"churnMin": 60}, "Desk.cs:tally", "desk.sh:tally"),
    ({"modifiedAfter": "2023-01-01"}, "desk.py:tally", "desk.go:tally"),
    ({"modifiedSince": DAYS}, "desk.py:tally", "desk.go:tally"),
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
    *(
        f"b:search:{name}"
        for name in sorted({name for arguments, _in, _out in FILE_CASES for name in arguments})
    )
)
@pytest.mark.parametrize(
    ("arguments", "found", "left_out"),
    FILE_CASES,
    # Not by their values: what is counted from today is another at midnight, for another worker.
    ids=[f"{' '.join(arguments)} {found}" for arguments, found, _ in FILE_CASES],
)
def test_what_is_known_of_a_file_narrows_its_chunks(
    shop: Shop, arguments: dict[str, Any], found: str, left_out: str
) -> None:
    sets = [shop.names(arguments, backend) for backend in BACKENDS]

    assert found in sets[0]
    assert left_out not in sets[0]
    assert sets[0] == sets[1] == sets[2]


@requirement("b:search:case", "b:search:caseFile")
def test_case_makes_paths_and_words_exact(shop: Shop) -> None:
    assert shop.names({"file": "DESK.GO", "case": True}) == set()
    assert shop.names({"file": "DESK.GO", "caseFile": True}) == set()
    assert shop.names({"file": "desk.go", "case": True})


@requirement("b:search:case", "b:search:caseTokens")
def test_words_can_be_asked_for_as_they_are_written(shop: Shop) -> None:
    loose = shop.names({"query": "ordererror", "mode": "code"})
    exact = shop.names({"query": "OrderError", "mode": "code", "caseTokens": True})

    assert "desk.py:fetchorder" in loose & exact
    assert shop.names({"query": "ordererror", "caseTokens": True, "ann": False}) == set()
    assert shop.names({"query": "ordererror", "case": True, "ann": False}) == set()


@requirement("b:search:branch")
def test_another_branch_gives_nothing(shop: Shop) -> None:
    assert shop.names({"branch": "release"}) == set()
    assert shop.names({"branch": "MAIN"}) == shop.names({})


@requirement("b:search:mode")
def test_each_mode_has_its_own_chunks(shop: Shop) -> None:
    by_mode = {
        mode: shop.names({"mode": mode})
        for mode in ("code", "prose", "extracted-prose", "records", "both", "all")
    }

    assert by_mode["records"]
    assert by_mode["extracted-prose"] < by_mode["prose"]
    assert by_mode["both"] == by_mode["code"] | by_mode["prose"] == shop.names({})
    assert by_mode["all"] == by_mode["both"] | by_mode["records"]


@requirement("b:search:async", "b:search:generator", "b:search:returns", "b:search:lint")
@pytest.mark.parametrize("flag", ["async", "generator", "returns", "lint"])
def test_a_flag_that_is_false_does_not_filter(shop: Shop, flag: str) -> None:
    assert shop.names({flag: False}) == shop.names({})
    assert shop.names({flag: True}) < shop.names({})


@requirement("b:search:riskTag", "b:search:risk")
def test_the_narrower_risk_argument_counts_when_both_are_given(shop: Shop) -> None:
    assert shop.names({"risk": "xss", "riskTag": "command-exec"}) == shop.names(
        {"riskTag": "command-exec"}
    )


def test_filters_are_and_ed(shop: Shop) -> None:
    both = shop.names({"lang": "python", "calls": "lookup"})

    assert both == shop.names({"lang": "python"}) & shop.names({"calls": "lookup"})
    assert both == {"desk.py:fetchorder"}
