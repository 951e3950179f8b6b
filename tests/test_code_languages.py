"""What a language's table makes of a file: every fact, in every language that has the concept."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleats.toolsets.code.facts import Chunk
from cleats.toolsets.code.kinds import KINDS, meant
from cleats.toolsets.code.languages.engine import Parsed, declarations
from cleats.toolsets.code.languages.registry import LANGUAGES
from tests.polyglot import FILES, FOLDER, Case, cases, plain

SOURCES = {lang: (FOLDER / name).read_bytes() for lang, name in FILES.items()}


def parsed(lang: str) -> Parsed:
    return declarations(lang, FILES[lang], SOURCES[lang])


def _within(field: str) -> Callable[[Chunk, object], bool]:
    return lambda chunk, value: any(
        str(value).lower() in each.lower() for each in getattr(chunk, field)
    )


def _named(field: str) -> Callable[[Chunk, object], bool]:
    return lambda chunk, value: any(
        each == value or each.endswith((f".{value}", f"::{value}"))
        for each in getattr(chunk, field)
    )


def _at_least(field: str) -> Callable[[Chunk, object], bool]:
    return lambda chunk, value: getattr(chunk, field) >= value


HAS: dict[str, Callable[[Chunk, object], bool]] = {
    "type": lambda chunk, value: chunk.kind in {k for n in str(value).split(",") for k in meant(n)},
    "calls": _named("calls"),
    "uses": _named("uses"),
    "signature": lambda chunk, value: str(value) in chunk.signature,
    "param": lambda chunk, value: value in chunk.params,
    "decorator": _within("decorators"),
    "inferredType": lambda chunk, value: any(
        str(value).lower() in each.type.lower() for each in chunk.types
    ),
    "returnType": lambda chunk, value: str(value).lower() in chunk.return_type.lower(),
    "throws": _within("throws"),
    "reads": _within("reads"),
    "writes": _within("writes"),
    "mutates": _within("mutates"),
    "alias": _within("aliases"),
    "awaits": _within("awaits"),
    "branchesMin": _at_least("branches"),
    "loopsMin": _at_least("loops"),
    "breaksMin": _at_least("breaks"),
    "continuesMin": _at_least("continues"),
    "visibility": lambda chunk, value: value in {chunk.visibility, *chunk.modifiers},
    "extends": _within("bases"),
    "async": lambda chunk, value: chunk.is_async is value,
    "generator": lambda chunk, value: chunk.is_generator is value,
    "returns": lambda chunk, value: chunk.returns is value,
}

FACTS = [row for row in cases() if row[1] in HAS]


def chunks_named(lang: str, name: str) -> list[Chunk]:
    return [chunk for chunk in parsed(lang).chunks if plain(chunk.name) == name]


@pytest.mark.parametrize(("lang", "argument", "case"), FACTS, ids=lambda each: str(each)[:24])
def test_a_fact_is_seen_where_it_is_and_not_where_it_is_not(
    lang: str, argument: str, case: Case
) -> None:
    has = HAS[argument]

    assert any(has(chunk, case.value) for chunk in chunks_named(lang, case.found))
    if case.left_out:
        assert chunks_named(lang, case.left_out)
        assert not any(has(chunk, case.value) for chunk in chunks_named(lang, case.left_out))


@pytest.mark.parametrize(
    ("lang", "wanted"), [(lang, case.value) for lang, name, case in cases() if name == "import"]
)
def test_imports_are_read_as_they_are_written(lang: str, wanted: str) -> None:
    imports = parsed(lang).imports

    assert any(each == wanted or each.startswith((f"{wanted}.", f"{wanted}/")) for each in imports)


@pytest.mark.parametrize("lang", sorted(LANGUAGES))
def test_a_sound_file_has_no_problem_and_only_known_kinds(lang: str) -> None:
    found = parsed(lang)

    assert found.problem == ""
    assert {chunk.kind for chunk in found.chunks} <= set(KINDS)


@pytest.mark.parametrize("lang", sorted(LANGUAGES))
def test_the_words_above_or_in_a_declaration_are_its_documentation(lang: str) -> None:
    (fetch,) = chunks_named(lang, "fetchorder")

    assert "Fetch one order, or complain" in fetch.doc or "FetchOrder fetches" in fetch.doc
    assert any(
        remark.kind == "docstring" and plain(remark.owner) == "fetchorder"
        for remark in parsed(lang).comments
    )


def _ranges(chunk: Chunk) -> list[tuple[int, int]]:
    return list(chunk.own) or [(chunk.start, chunk.end)]


def _lists(chunk: Chunk) -> Iterator[list[str]]:
    for field in ("params", "decorators", "bases", "calls", "uses", "reads", "writes", "mutates"):
        yield getattr(chunk, field)
    for field in ("aliases", "throws", "awaits", "modifiers"):
        yield getattr(chunk, field)


def check_laws(found: Parsed, data: bytes) -> None:
    """What holds for every file, broken or not."""
    spans = sorted(span for chunk in found.chunks for span in _ranges(chunk))
    assert all(before[1] <= after[0] for before, after in pairwise(spans)), "own ranges overlap"
    for chunk in found.chunks:
        assert 0 <= chunk.start <= chunk.end <= len(data)
        assert 1 <= chunk.start_line <= chunk.end_line
        assert all(chunk.start <= start < end <= chunk.end for start, end in chunk.own)
        for values in _lists(chunk):
            assert len(values) == len(set(values))


@pytest.mark.parametrize("lang", sorted(LANGUAGES))
def test_own_ranges_are_apart_and_cover_all_that_is_not_blank(lang: str) -> None:
    found, data = parsed(lang), SOURCES[lang]

    check_laws(found, data)
    left = bytearray(data)
    for chunk in found.chunks:
        for start, end in _ranges(chunk):
            left[start:end] = b" " * (end - start)
    assert not bytes(left).strip()


@pytest.mark.parametrize("lang", sorted(LANGUAGES))
@settings(derandomize=True)  # builds stop a grammar that is busy for long; here nobody does
@given(data=st.data())
def test_a_torn_file_is_read_as_far_as_it_goes(lang: str, data: st.DataObject) -> None:
    source = SOURCES[lang]
    cut = data.draw(st.integers(0, len(source)))
    skip = data.draw(st.integers(0, 40))
    torn = source[:cut] + data.draw(st.binary(max_size=8)) + source[cut + skip :]

    check_laws(declarations(lang, FILES[lang], torn), torn)


@pytest.mark.parametrize("lang", sorted(LANGUAGES))
@pytest.mark.parametrize(
    "hostile",
    [
        b"",
        b"\x00\xff\xfe" * 100,
        b"(" * 50_000,
        b"{" * 20_000 + b"}" * 20_000,
        b"x = " + b"a + " * 20_000 + b"a\n",
        b"a." * 20_000 + b"a\n",
        b"f(" * 3_000 + b")" * 3_000,
        b"if x:\n" * 500,
        b'"' + b"x" * 1_000_000,
    ],
    ids=["nothing", "bytes", "opening", "braces", "sums", "dots", "calls", "ifs", "long"],
)
def test_hostile_text_neither_raises_nor_hangs(lang: str, hostile: bytes) -> None:
    check_laws(declarations(lang, "hostile", hostile), hostile)


def test_a_syntax_error_costs_only_what_it_covers() -> None:
    broken = b"def good():\n    return 1\n\ndef bad(:\n    pass\n\ndef better():\n    return 2\n"

    found = declarations("python", "broken.py", broken)

    assert "line 4" in found.problem
    assert {"good", "better"} <= {chunk.name for chunk in found.chunks}
