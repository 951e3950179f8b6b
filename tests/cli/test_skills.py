"""Tests of `cleats skills` as a user runs it, in a temporary home and project."""

import json
from pathlib import Path

import pytest

from cleats.toolsets.skills.authoring import validate_skill
from tests.support.shell import Shell
from tests.support.skills import write_old_file, write_skill


@pytest.fixture
def project(shell: Shell) -> Path:
    """Return the folder that the command runs in; the home is above it."""
    return shell.folder


def write_project_skill(project: Path, name: str, *words: str, **fields: str) -> Path:
    return write_skill(project / ".agents" / "skills" / name, *words, **fields)


def test_list_shows_names_places_and_descriptions(shell: Shell, project: Path) -> None:
    write_project_skill(project, "pdf", "Fill in forms")
    write_skill(project / "more" / "xlsx", "Count things")

    plain = shell.run("skills", "--skill-dir", "more", "list")
    as_json = json.loads(shell.run("skills", "list", "--json").stdout)

    assert plain.stdout.splitlines() == [
        "SKILL  FROM         WHAT IT DOES",
        "xlsx   custom       Count things",
        "pdf    user/agents  Fill in forms",
    ]
    assert as_json == [
        {
            "name": "pdf",
            "description": "Fill in forms",
            "state": "on",
            "scope": "user",
            "from": "user/agents",
            "path": str(project / ".agents/skills/pdf/SKILL.md"),
            "uri": "skill://user/agents/pdf/SKILL.md",
        }
    ]


def test_list_tells_of_what_could_not_be_loaded(shell: Shell, project: Path) -> None:
    write_old_file(project / ".agents" / "skills" / "bad" / "SKILL.md", "nothing")

    ran = shell.run("skills", "list")

    assert ran.returncode == 0
    assert "No skills found. Run `cleats skills new NAME` to create one." in ran.stdout
    assert "it has no front matter" in ran.stderr


def test_info_shows_one_skill_and_full_what_an_agent_gets(shell: Shell, project: Path) -> None:
    path = write_project_skill(project, "pdf", "Fill in forms", body="line\n" * 30)
    write_old_file(path.with_name("guide.md"), "x")

    short, full = shell.run("skills", "info", "PDF"), shell.run("skills", "info", "pdf", "--full")
    as_json = json.loads(shell.run("skills", "info", "pdf", "--json").stdout)

    assert "guide.md" in short.stdout
    assert "more lines; --full shows them." in short.stdout
    assert full.stdout == f"Loading: pdf\nBase directory: {path.parent}\n\n{path.read_text()}"
    assert as_json["files"] == ["SKILL.md", "guide.md"]
    assert as_json["text"] == path.read_text()


def test_info_about_a_wrong_name_suggests_the_right_one(shell: Shell, project: Path) -> None:
    write_project_skill(project, "pdf")

    near, far = shell.run("skills", "info", "pfd"), shell.run("skills", "info", "zzzzz")

    assert (near.returncode, far.returncode) == (1, 1)
    assert near.stderr == "Error: Skill not found: 'pfd'. Did you mean: pdf?\n"
    assert far.stderr.endswith("`cleats skills list` shows them all.\n")


def test_info_about_a_wrong_name_is_json_when_asked_for(shell: Shell, project: Path) -> None:
    write_project_skill(project, "pdf")

    process = shell.run("skills", "info", "pfd", "--json")

    answer = json.loads(process.stdout)
    assert (process.returncode, process.stderr, answer["ok"]) == (1, "", False)
    assert answer["error"]["code"] == "NOT_FOUND"


def test_search_ranks_and_exits_with_one_when_nothing_fits(shell: Shell, project: Path) -> None:
    write_project_skill(project, "text", "Words", body="It can read a PDF.\n")
    write_project_skill(project, "pdf", "Forms")
    write_project_skill(project, "print", "Print a PDF")

    matches = json.loads(shell.run("skills", "search", "pdf", "--json").stdout)
    empty_search = shell.run("skills", "search", "qqq")

    assert [match["name"] for match in matches] == ["pdf", "print", "text"]
    assert empty_search.returncode == 1


def test_disable_hides_and_enable_shows_again(shell: Shell, project: Path) -> None:
    path = write_project_skill(project, "pdf")
    write_project_skill(project, "docx")
    text = path.read_text()

    off = shell.run("skills", "disable", "pdf")
    visible_skills = json.loads(shell.run("skills", "list", "--json").stdout)
    all_skills = json.loads(shell.run("skills", "list", "--all", "--json").stdout)
    on = shell.run("skills", "enable", "pdf")
    again = json.loads(shell.run("skills", "list", "--json").stdout)

    assert (off.returncode, on.returncode) == (0, 0)
    assert [listed_skill["name"] for listed_skill in visible_skills] == ["docx"]
    assert [(listed_skill["name"], listed_skill["state"]) for listed_skill in all_skills] == [
        ("docx", "on"),
        ("pdf", "off"),
    ]
    assert [listed_skill["name"] for listed_skill in again] == ["docx", "pdf"]
    assert path.read_text() == text


def test_enable_undoes_a_renamed_file_as_well(shell: Shell, project: Path) -> None:
    path = write_project_skill(project, "pdf")
    path.rename(path.with_name(".SKILL.md"))

    ran = shell.run("skills", "enable", "pdf")

    assert ran.stdout == "pdf is on. Running servers notice within half a minute.\n"
    assert path.exists()


def test_enable_tells_of_two_skills_of_one_name_once(shell: Shell, project: Path) -> None:
    twins = [write_project_skill(project, "pdf"), write_skill(project / ".claude" / "skills" / "pdf")]
    for path in twins:
        path.rename(path.with_name(".SKILL.md"))

    ran = shell.run("skills", "enable", "pdf")

    assert ran.stdout == "pdf is on. Running servers notice within half a minute.\n"
    assert all(path.exists() for path in twins)


def test_a_switch_that_is_where_it_should_be_is_no_error(shell: Shell, project: Path) -> None:
    write_project_skill(project, "pdf")
    write_project_skill(project, "docx")

    on = shell.run("skills", "enable", "pdf")
    shell.run("skills", "disable", "pdf")
    off = shell.run("skills", "disable", "pdf", "docx")
    unknown = [shell.run("skills", word, "dox") for word in ("disable", "enable")]

    assert (on.returncode, on.stdout) == (0, "pdf is already on.\n")
    assert off.returncode == 0
    assert off.stdout.startswith("docx is off. ")
    assert off.stdout.endswith("pdf is already off.\n")
    assert [(process.returncode, "not found: 'dox'" in process.stderr) for process in unknown] == [
        (1, True),
        (1, True),
    ]


def test_what_counts_can_be_said_before_and_behind_the_command(shell: Shell, project: Path) -> None:
    write_project_skill(project, "pdf")
    write_project_skill(project, "docx")
    where = ("--include", "doc*")

    before = shell.run("skills", *where, "list", "--json")
    behind = shell.run("skills", "list", *where, "--json")
    search_process = shell.run("skills", "search", "knows", *where, "--json")
    hidden_info = shell.run("skills", "info", "pdf", *where)

    for process in (before, behind, search_process):
        assert [skill["name"] for skill in json.loads(process.stdout)] == ["docx"]
    assert hidden_info.returncode == 1


def test_a_pattern_that_fits_nothing_is_mentioned_without_a_place(shell: Shell, project: Path) -> None:
    write_project_skill(project, "pdf")

    process = shell.run("skills", "list", "--exclude", "nope")

    assert "\n1 problem:\n  warning: the pattern 'nope' matches no skill\n" in process.stderr


def test_info_is_json_when_asked_for_even_in_full(shell: Shell, project: Path) -> None:
    path = write_project_skill(project, "pdf")

    skill_info = json.loads(shell.run("skills", "info", "pdf", "--full", "--json").stdout)

    assert skill_info["text"] == path.read_text()


def test_new_says_where_it_could_not_write_and_what_to_do(shell: Shell, project: Path) -> None:
    (project / ".agents").write_text("a file where a folder has to be")

    process = shell.run("skills", "new", "release-notes")

    assert process.returncode == 1
    assert "Errno" not in process.stderr
    assert "Use --dir or --user to create it elsewhere." in process.stderr


def test_validate_warns_about_the_description_of_the_template(shell: Shell, project: Path) -> None:
    assert shell.run("skills", "new", "release-notes").returncode == 0

    checked = shell.run("skills", "validate", cwd=str(project))

    assert checked.returncode == 0
    assert "warning: the description is still the one of the template" in checked.stdout


def test_new_writes_a_skill_that_validate_accepts(shell: Shell, project: Path) -> None:
    process = shell.run("skills", "new", "release-notes", "--description", 'Say: "what" changed')
    path = project / ".agents" / "skills" / "release-notes" / "SKILL.md"
    checked = shell.run("skills", "validate", str(path), "--strict")
    again = shell.run("skills", "new", "release-notes")
    wrong = shell.run("skills", "new", "Release Notes")

    assert process.stdout == f"Wrote {path}\n"
    assert (checked.returncode, checked.stdout) == (0, f"{path}: ok\n")
    assert (again.returncode, wrong.returncode) == (1, 1)
    assert "already exists" in again.stderr
    assert "such as release-notes" in wrong.stderr


def test_validate_finds_every_skill_below_and_fails_for_errors(shell: Shell, project: Path) -> None:
    write_skill(project / "skills" / "good")
    write_skill(project / "skills" / "group" / "bad", name="Bad Name")
    write_old_file(project / "skills" / "bare" / "SKILL.md", "")

    ran = shell.run("skills", "validate", "skills", "--json")
    empty_validation = shell.run("skills", "validate", ".git" if (project / ".git").exists() else ".")

    report = json.loads(ran.stdout)
    assert ran.returncode == 1
    assert report["ok"] is False
    assert [len(skill_report["findings"]) > 0 for skill_report in report["skills"]] == [True, False, True]
    assert empty_validation.returncode == 1


def test_validate_with_nothing_to_check_is_a_usage_error(shell: Shell, project: Path) -> None:
    (project / "empty").mkdir()

    assert shell.run("skills", "validate", "empty").returncode == 2


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("name: x\ndescription: d", "the skill is called 'x', but its folder is called 'pdf'"),
        ("name: 7\ndescription: d", 'Put it in quotes: name: "7".'),
        ("description: d", "Add `name: pdf`."),
        ("name: pdf", "it has no description, or it is not text"),
        (f"name: pdf\ndescription: {'x' * 1025}", "has 1025 characters; the maximum is 1024"),
        ("name: pdf\ndescription: d\nauthor: me", "Move it under `metadata`"),
        ("name: pdf\ndescription: d\nallowed-tools: [Read]", "in one line with spaces"),
        ("name: pdf\ndescription: d\nmetadata:\n  v: 1.0", 'Put it in quotes: v: "1.0".'),
        ("name: pdf\ndescription: d\nmetadata: x", "'metadata' is not a map"),
        ("name: pdf\ndescription: d\nlicense:", "'license' is not text"),
        (f"name: pdf\ndescription: d\ncompatibility: {'x' * 501}", "501 characters; the maximum is 500"),
        ("name: pdf\ndescription: Use when: asked", "Put the value in quotes"),
        ("name: pdf\n\tdescription: d", "a tab indents a line (line 3) Indent with spaces;"),
        ("\tname: pdf\n\tdescription: d", "a tab indents a line (line 2) Indent with spaces;"),
        ("name: UPPER Case!\ndescription: d", "folder is called 'pdf' Call both 'upper-case'."),
        ("name: xls\ndescription: d", "Rename the folder to 'xls', or the skill to 'pdf'."),
        ("name: pdf\nname: pdf\ndescription: d", "'name' occurs twice Keep one of the two."),
        ("name: pdf\ndescription: !x d", "tag '!x' (line 3) Remove the tag; a text that"),
        ("name: pdf\ndescription: d\nmetadata:\n  1: d", "key '1' is not text Put the key in"),
        ("name: pdf\ndescription: d\nmodel: big", "only Claude Code knows 'model'"),
    ],
)
def test_each_broken_rule_is_found_with_a_fix(tmp_path: Path, header: str, words: str) -> None:
    path = write_old_file(tmp_path / "pdf" / "SKILL.md", f"---\n{header}\n---\n")

    findings = validate_skill(str(path))

    assert any(words in f"{finding.message} {finding.fix}" for finding in findings)
    assert all(finding.fix for finding in findings)


def test_a_link_to_a_file_that_is_not_there_is_found(tmp_path: Path) -> None:
    body = "[a](here.md) [b](gone.md#x) [c](https://x.y/z) `[d](code.md)`\n```\n[e](f.md)\n```\n"
    path = write_skill(tmp_path / "pdf", body=body)
    write_old_file(path.with_name("here.md"), "")

    assert [finding.message for finding in validate_skill(str(path))] == ["it links to gone.md, which does not exist"]


@pytest.mark.parametrize("command", ["list", "info", "search", "validate", "enable", "disable", "new"])
def test_every_command_has_help_with_an_example(shell: Shell, command: str) -> None:
    ran = shell.run("skills", command, "--help")

    assert ran.returncode == 0
    assert f"cleats skills {command}" in ran.stdout.partition("Example")[2]
