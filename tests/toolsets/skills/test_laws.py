"""Laws of reading and describing that hold for every skill."""

import json
import re
import string
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from cleats.settings import Settings
from cleats.system.front_matter import FrontMatterError
from cleats.system.skill_header import _load_yaml, _parse_plain, parse_skill_header
from cleats.toolsets.skills.catalogue import SkillCatalogue, assemble_catalogue
from cleats.toolsets.skills.descriptions import LIST_HEADER, describe_catalogue
from cleats.toolsets.skills.library import SkillLibrary
from cleats.toolsets.skills.selection import SkillFilter
from cleats.toolsets.skills.skill import FileStamp, Skill, SkillSource
from tests.support.shell import LAW_SETTINGS
from tests.support.skills import SkillFolders, write_old_file

USER_SOURCE = SkillSource(path="/s", scope="user", label="user/claude")

keys = st.text(string.ascii_letters + "_-", min_size=1).filter(lambda key: key[0] != "-")
lines = st.text(
    st.characters(blacklist_categories=["Cs", "Cc", "Zl", "Zp"], blacklist_characters="\ufeff"),
    max_size=40,
)
words = lines.filter(lambda line: not re.match(r"[-+.]*\d", line))
"""Lines that do not look like a number: the YAML 1.1 writer leaves 1e3 unquoted."""

scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**40), 2**40), words)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))


def build_skill(name: str, description: str = "d", source: SkillSource = USER_SOURCE, number: int = 0) -> Skill:
    return Skill(
        name=name,
        description=description,
        folder=f"/s/{name}-{number}",
        source=source,
        uri_path=name,
        stamp=FileStamp(number, 1, 1),
        identity=(1, number),
    )


@given(block=st.lists(st.tuples(keys, lines), min_size=1, max_size=5))
@example(block=[("False", "a key that is no text")])
@LAW_SETTINGS
def test_the_short_cut_reads_what_the_yaml_parser_reads_or_nothing(
    block: list[tuple[str, str]],
) -> None:
    text = "".join(f"{key}: {value}\n" for key, value in block)

    quick = _parse_plain(text)

    if quick is not None:
        assert (quick, "", "") == _load_yaml(text)


@given(fields=st.dictionaries(keys, values, min_size=1, max_size=5))
@LAW_SETTINGS
def test_whatever_a_yaml_writer_wrote_is_read_back(fields: dict[str, Any]) -> None:
    text = yaml.safe_dump(fields, allow_unicode=True, width=20, sort_keys=False)
    header = parse_skill_header(f"---\n{text}---\nbody\n")

    assert header.fields == fields
    assert header.strict


@given(fields=st.dictionaries(keys, lines, min_size=1, max_size=5), ending=st.sampled_from("\n\r"))
@LAW_SETTINGS
def test_json_is_read_back_too_with_any_line_ending(fields: dict[str, str], ending: str) -> None:
    ending = "\r\n" if ending == "\r" else ending
    block = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}{ending}" for key, value in fields.items())

    assert parse_skill_header(f"\ufeff---{ending}{block}---{ending}").fields == fields


@given(text=st.text(max_size=200))
@LAW_SETTINGS
def test_no_text_makes_the_reader_fail_in_another_way_than_by_saying_so(text: str) -> None:
    for candidate in (text, f"---\n{text}\n---\n", f"---\nname: x\ndescription: {text}\n---"):
        with suppress(FrontMatterError):
            json.dumps(parse_skill_header(candidate).fields, allow_nan=False)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("v: no", "no"),
        ("v: 2024-01-01", "2024-01-01"),
        ("v: 1.10", 1.1),
        ("v: 010", 10),
        ("v: 0x1f", 31),
        ("v: 12:30:45", "12:30:45"),
        ("v: ~", None),
        ("v:", None),
        ("v: 'it''s'", "it's"),
        ("v: >-\n  folded\n  text", "folded text"),
        ("v: [a, b]", ["a", "b"]),
        ("v: a # comment", "a"),
        ("v: 'a' # comment", "a"),
        ("v: =", "="),
    ],
)
def test_values_are_those_of_yaml_1_2(line: str, value: object) -> None:
    header = parse_skill_header(f"---\n{line}\n---\n")

    assert header.fields == {"v": value}
    assert header.strict


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("v: Use when: asked", "Use when: asked"),
        ("v: @home", "@home"),
        ("v: *bold* text", "*bold* text"),
        ("v: `code` first", "`code` first"),
        ("v: %x", "%x"),
        ("v: - item", "- item"),
        (r'v: "JSON \ud83d\ude00 wrote it"', "JSON \U0001f600 wrote it"),
        (r'v: "half \ud800 of a pair"', r"half \ud800 of a pair"),
    ],
)
def test_common_mistakes_are_repaired_and_remembered(line: str, value: str) -> None:
    header = parse_skill_header(f"---\n{line}\nw: fine\n---\n")

    assert header.fields["v"] == value
    assert not header.strict


def test_a_header_that_asks_for_billions_of_values_is_refused() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]
    block = "\n".join(lines)

    header = parse_skill_header(f"---\nname: x\n{block}\n---\n")

    assert not header.strict
    assert header.fields["name"] == "x"


@pytest.mark.parametrize(
    "line",
    [
        "a: &a [*a]",
        "a: &a {b: {c: *a}}",
        "a: " + "[" * 60 + "]" * 60,
        "a: " + "[" * 20_000 + "]" * 20_000,
    ],
    ids=["in itself", "in what is in itself", "sixty levels", "twenty thousand levels"],
)
def test_a_header_that_is_nested_without_end_costs_no_more_than_its_own_field(line: str) -> None:
    header = parse_skill_header(f"---\nname: x\n{line}\n---\n")

    assert not header.strict
    assert header.fields["name"] == "x"


@given(
    count=st.integers(0, 120),
    length=st.integers(1, 1500),
    budget=st.integers(500, 9000),
    name=st.integers(1, 64),
    has_search=st.booleans(),
)
@LAW_SETTINGS
def test_the_description_keeps_its_budget_and_counts_what_it_leaves_out(
    count: int, length: int, budget: int, name: int, *, has_search: bool
) -> None:
    skills = [
        build_skill(f"s{n}".ljust(name, "x"), ("word " * length)[:length].strip(), number=n) for n in range(count)
    ]

    text = describe_catalogue(SkillCatalogue(skills=skills), budget, has_search=has_search)

    skill_lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(text) <= max(budget, len(LIST_HEADER) + name + 60)
    if len(skill_lines) < count:
        way = "find them with skill_search" if has_search else "ask for one by a part of its name"
        assert text.splitlines()[-1] == f"... and {count - len(skill_lines)} more: {way}."
        assert not any(":" in line for line in skill_lines)
    else:
        assert [line[2:].partition(":")[0] for line in skill_lines] == [s.name for s in skills]


def test_descriptions_are_shortened_before_any_skill_is_left_out() -> None:
    skills = [build_skill(f"skill-{n}", "word " * 50, number=n) for n in range(60)]

    text = describe_catalogue(SkillCatalogue(skills=skills), 8000)

    lines = text.splitlines()[3:]
    assert len(lines) == 60
    assert len(set(map(len, lines))) <= 3
    assert all(line.endswith("…") for line in lines)
    assert 7500 < len(text) <= 8000


@given(names=st.lists(st.sampled_from("abcd"), max_size=12), plugins=st.integers(0, 3))
@LAW_SETTINGS
def test_every_skill_is_reached_by_some_name_and_no_name_by_two(names: list[str], plugins: int) -> None:
    by_plugin = [
        SkillSource(path=f"/p{n}", scope="plugin", label=f"plugin/p{n}", plugin=f"p{n}") for n in range(plugins)
    ]
    own_skills = [build_skill(name, number=number) for number, name in enumerate(names)]
    skill_groups = [own_skills]
    for number, source in enumerate(by_plugin, 1):
        skill_groups.append(
            [build_skill(name, source=source, number=1000 * number + n) for n, name in enumerate(dict.fromkeys(names))]
        )

    catalogue = assemble_catalogue(skill_groups, skill_filter=SkillFilter((), ()))

    full = [skill.full_name for skill in catalogue.skills]
    assert len(full) == len(set(full))
    assert all(catalogue.find(skill.full_name) is skill for skill in catalogue.skills)
    assert len(catalogue.skills) + len(catalogue.shadowed) == sum(map(len, skill_groups))


def test_bytes_that_are_no_text_never_stop_a_look(tmp_path: Path) -> None:
    world = SkillFolders(tmp_path)
    for number, data in enumerate((b"", b"\xff\xfe", b"\0" * 10, b"---\n", b"---\n\x00: x\n---\n")):
        write_old_file(world.claude / "skills" / f"s{number}" / "SKILL.md", data)
    world.write_user_skill("good")

    catalogue = SkillLibrary(world.build_settings()).catalogue

    assert [skill.name for skill in catalogue.skills] == ["good"]
    assert len(catalogue.problems) == 5


def test_names_are_listed_without_descriptions_before_any_skill_is_left_out() -> None:
    skills = [build_skill(f"skill-{n:03}", "word " * 50, number=n) for n in range(150)]

    text = describe_catalogue(SkillCatalogue(skills=skills), Settings().skills.budget)

    assert text.splitlines()[3:] == [f"- {skill.name}" for skill in skills]
    assert len(text) <= 2000
