"""Rule files: what they may contain, how patterns match names, and how mistakes are reported."""

import tomllib
from pathlib import Path

import pytest

from cleats.toolsets.code.analysis.languages.engine import LANGUAGES
from cleats.toolsets.code.analysis.risk import rules as module
from cleats.toolsets.code.analysis.risk.name_patterns import PatternLookup, compile_pattern, is_imported
from cleats.toolsets.code.analysis.risk.rule_lookup import compile_rules
from cleats.toolsets.code.analysis.risk.rules import (
    RiskRule,
    RiskRules,
    SanitizerRule,
    SinkRule,
    SourceRule,
    load_rules,
)

RULES_SOURCE = """
languages = ["python"]

[[sink]]
id = "own.launch"
name = "launch"
category = "command"
severity = "high"
patterns = ["*.launch_missiles"]
"""


def write_rules(folder: Path, text: str, name: str = "own.toml") -> Path:
    file = folder / name
    file.write_text(text, "utf-8")
    return file


def matches_pattern(pattern: str, name: str, *, matches_members: bool = False) -> bool:
    return bool(PatternLookup([(compile_pattern(pattern, matches_members=matches_members), True)])[name])


def list_all_rules(rules: RiskRules) -> list[RiskRule]:
    return list({rule.id: rule for lang in sorted(LANGUAGES) for rule in rules.select_for_language(lang)}.values())


def test_our_own_rules_have_no_problems() -> None:
    assert load_rules().problems == []
    assert len(list_all_rules(load_rules())) > 200


def test_every_language_has_sources_sinks_and_sanitizers() -> None:
    rules = load_rules()

    for lang in LANGUAGES:
        kinds = {type(rule).__name__ for rule in rules.select_for_language(lang)}
        assert kinds == {"SourceRule", "SinkRule", "SanitizerRule", "CallRule"}, lang


def test_the_names_and_tags_that_people_search_for_are_there() -> None:
    rules = list_all_rules(load_rules())
    sources = {rule.name: rule for rule in rules if isinstance(rule, SourceRule)}
    sinks = {rule.name: rule for rule in rules if isinstance(rule, SinkRule)}

    assert {"req.body", "req.query", "req.params", "process.env", "location"} <= sources.keys()
    assert sources["process.env"].category == "config"
    assert {"eval", "exec", "spawn", "file.write", "sql.query", "innerHTML"} <= sinks.keys()
    tags = {tag for rule in sources.values() for tag in rule.tags}
    tags |= {tag for rule in sinks.values() for tag in rule.tags}
    assert {
        *("http-input", "env", "cli-input", "stdin", "browser-input"),
        *("command-exec", "code-exec", "sql", "xss", "file-write", "deserialize"),
    } <= tags


def test_every_category_that_is_cleaned_or_left_out_is_one_of_a_sink() -> None:
    rules = list_all_rules(load_rules())
    categories = {rule.category for rule in rules if isinstance(rule, SinkRule)} | {"*"}

    for rule in rules:
        assert set(getattr(rule, "cleans", ())) <= categories, rule.id
        assert set(getattr(rule, "except_categories", ())) <= categories, rule.id


def test_the_rules_of_a_folder_are_added_to_ours(tmp_path: Path) -> None:
    write_rules(tmp_path, RULES_SOURCE)

    rules = load_rules([tmp_path])

    assert rules.problems == []
    assert len(list_all_rules(rules)) == len(list_all_rules(load_rules())) + 1


def test_a_rule_with_a_known_id_replaces_it(tmp_path: Path) -> None:
    file = write_rules(tmp_path, RULES_SOURCE.replace("own.launch", "python.eval"))

    rules = load_rules([file])

    assert len(list_all_rules(rules)) == len(list_all_rules(load_rules()))
    assert next(rule for rule in list_all_rules(rules) if rule.id == "python.eval").patterns == ["*.launch_missiles"]


def test_the_fingerprint_is_that_of_what_the_rules_say(tmp_path: Path) -> None:
    plain, more = load_rules(), load_rules([write_rules(tmp_path, RULES_SOURCE)])

    assert plain.fingerprint == load_rules([tmp_path / "nothing"]).fingerprint
    assert more.fingerprint != plain.fingerprint
    assert load_rules([write_rules(tmp_path, RULES_SOURCE.replace("high", "low"))]).fingerprint != more.fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('severity = "high"', 'severity = "huge"'), "'own.launch': severity: "),
        (('name = "launch"', "name = 3"), "'own.launch': name: "),
        (('category = "command"', ""), "'own.launch': rule: Object missing required field"),
        (('category = "command"', 'categorie = "x"'), "'own.launch': rule: "),
        (('id = "own.launch"', ""), "sink number 1: rule: "),
        (('["*.launch_missiles"]', "[]"), "'own.launch': patterns: the list is empty"),
        (("*.launch_missiles", "*.*"), "'own.launch': patterns: '*.*' has no segment"),
        (("*.launch_missiles", "a*b*c*d*e*.f"), "has more than 4 wildcards"),
        (('languages = ["python"]', ""), "'own.launch': languages: the list is empty"),
        (('languages = ["python"]', "languages = 3"), "'own.launch': languages: "),
        (
            ('severity = "high"', 'requires = [{ text = [""] }]'),
            "'own.launch': requires[0].text[0]: ",
        ),
        (('severity = "high"', "requires = [{ words = 3 }]"), "'own.launch': requires[0]: "),
        (("[[sink]]", "[[sinks]]"), "sinks: is not one of languages, [[source]]"),
        (("[[sink]]", "[sink]"), "sink: is not one of"),
        (("[[sink]]", "[[sink"), "is not TOML"),
        (("[[sink]]", "sink = [3]\n[[call]]"), "sink number 1: rule: "),
    ],
)
def test_a_mistake_is_said_with_file_rule_and_field_and_costs_only_its_rule(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    file = write_rules(tmp_path, RULES_SOURCE.replace(*change))
    good = write_rules(tmp_path, RULES_SOURCE.replace("own.", "other."), "other.toml")

    rules = load_rules([file, good])

    assert any(message in problem and str(file) in problem for problem in rules.problems)
    assert "own.launch" not in {rule.id for rule in list_all_rules(rules)}
    assert "other.launch" in {rule.id for rule in list_all_rules(rules)}


def test_a_file_that_is_missing_too_large_or_not_text_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_rules(tmp_path, RULES_SOURCE)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    monkeypatch.setattr(module, "MAX_RULE_FILE_BYTES", 20)

    rules = load_rules([tmp_path / "gone", file, tmp_path / "bytes"])

    assert [problem.split(": ")[1] for problem in rules.problems] == [
        "cannot be read",
        "larger than 20 bytes",
        "is not TOML",
    ]


def test_two_rules_of_one_id_in_a_file_are_a_problem(tmp_path: Path) -> None:
    twice = RULES_SOURCE + RULES_SOURCE.replace('languages = ["python"]\n', "").replace("launch_m", "other_m")

    rules = load_rules([write_rules(tmp_path, twice)])

    assert len(rules.problems) == 1
    assert "'own.launch': id: is used twice" in rules.problems[0]


def test_rules_without_a_language_of_their_own_have_that_of_the_file() -> None:
    for file in module.BUILTIN_RULES_DIR.glob("*.toml"):
        assert tomllib.loads(file.read_text("utf-8"))["languages"], file


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("eval", "eval"),
        ("*.execute", "cursor.execute"),
        ("*.execute", "self.db.cursor().execute"),
        ("**.execute", "execute"),
        ("**.db.query", "db.query"),
        ("**.db.query", "this.db.query"),
        ("fs.write*", "fs.writeFileSync"),
        ("std::env::args", "std::env::args"),
        ("$request.input", "$request->input"),
        ("req.body", "req?.body"),
        ("$().html", "$().html"),
        ("new Function", "new Function"),
        ("*cursor.execute", "mycursor.execute"),
    ],
)
def test_a_pattern_meets_a_name(pattern: str, name: str) -> None:
    assert matches_pattern(pattern, name)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("eval", "x.eval"),
        ("eval", "evaluate"),
        ("*.execute", "execute"),
        ("*.execute", "x.execute.y"),
        ("fs.write*", "fs.promises.write"),
        ("os.system", "os_system"),
        ("req.body", "req.bodyguard"),
    ],
)
def test_a_pattern_does_not_meet_what_only_looks_like_it(pattern: str, name: str) -> None:
    assert not matches_pattern(pattern, name)


def test_a_source_is_met_by_what_is_reached_through_it() -> None:
    for name in ("req.body", "req.body.name", "req.body[]", "req.body[].x.trim"):
        assert matches_pattern("req.body", name, matches_members=True)

    assert matches_pattern("input()", "input().strip", matches_members=True)
    assert not matches_pattern("input()", "input.strip", matches_members=True)


def test_a_module_is_imported_as_a_whole_or_in_part() -> None:
    assert is_imported("os", ["os.path"])
    assert is_imported("child_process", ["node:child_process"])
    assert is_imported("fs", ["fs/promises"])
    assert not is_imported("os", ["osmosis", "posix"])


def test_names_beyond_the_memory_are_still_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleats.toolsets.code.analysis.risk.name_patterns.MAX_CACHED_NAMES", 2)
    lookup = PatternLookup([(compile_pattern("a.*", matches_members=False), 1)])

    assert [bool(lookup[f"{letter}.x"]) for letter in "abcabc"] == [True, False, False] * 2


def test_a_name_that_nobody_writes_is_met_by_nothing() -> None:
    lookup = PatternLookup([(compile_pattern("*.run", matches_members=False), 1)])

    assert lookup["a" * 200 + ".run"]
    assert not lookup["a" * 400 + ".run"]
    assert len(lookup) == 1


def test_our_files_are_for_the_languages_at_their_top() -> None:
    for file in module._builtin_rule_files():
        for rule in file.rules:
            assert "*" in file.languages or set(rule.languages) <= set(file.languages), rule.id


def test_the_rules_of_a_language_are_those_of_all_that_are_for_it(tmp_path: Path) -> None:
    rules = load_rules([write_rules(tmp_path, RULES_SOURCE)])

    expected = [rule.id for rule in list_all_rules(rules) if {"python", "*"}.intersection(rule.languages)]
    assert sorted(rule.id for rule in rules.select_for_language("python")) == sorted(expected)
    assert "own.launch" in expected
    assert "own.launch" not in {rule.id for rule in rules.select_for_language("go")}


def test_any_member_of_a_source_is_one_and_no_method_is() -> None:
    for name in ("request.sort", "request.sort.by", "request.sort[]"):
        assert matches_pattern("$request.*", name, matches_members=True)
    for name in ("request", "request.user()", "request.user().name"):
        assert not matches_pattern("$request.*", name, matches_members=True)


@pytest.mark.parametrize("lang", sorted(LANGUAGES))
def test_no_call_that_is_a_source_is_dropped(lang: str) -> None:
    rules = load_rules()
    names = [
        pattern.partition("@")[0].removesuffix("()").replace("*", "x")
        for rule in rules.select_for_language(lang)
        if isinstance(rule, SourceRule)
        for pattern in rule.patterns
    ]
    callees = {name: compile_rules(rules, lang).callees[name] for name in names}

    assert [name for name, callee in callees.items() if callee.effect == "drops"] == []


@pytest.mark.parametrize("lang", sorted(LANGUAGES))
def test_no_pattern_is_of_two_sanitizers_because_only_the_first_would_count(lang: str) -> None:
    patterns = [
        pattern
        for rule in load_rules().select_for_language(lang)
        if isinstance(rule, SanitizerRule)
        for pattern in rule.patterns
    ]

    assert sorted(patterns) == sorted(set(patterns))
