"""Tests of skill discovery: the folders, the skills that count, and the problems of the rest."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cleats.toolsets.skills import scan
from cleats.toolsets.skills.catalogue import SkillCatalogue
from cleats.toolsets.skills.library import SkillLibrary
from cleats.toolsets.skills.sources import list_sources
from tests.support.shell import Shell
from tests.support.skills import SkillFolders, load_skill, read_skill_description, write_old_file, write_skill


@pytest.fixture
def world(tmp_path: Path) -> SkillFolders:
    return SkillFolders(tmp_path)


def load_catalogue(world: SkillFolders, **settings: object) -> SkillCatalogue:
    return SkillLibrary(world.build_settings(**settings)).catalogue


def list_skill_names(world: SkillFolders, **settings: object) -> list[str]:
    return [skill.full_name for skill in load_catalogue(world, **settings).skills]


def list_problem_codes(world: SkillFolders, **settings: object) -> list[str]:
    return [problem.code for problem in load_catalogue(world, **settings).problems]


SKILL_FOLDERS = [
    "custom",
    "project/.agent/skills",
    "project/.agents/skills",
    "project/.claude/skills",
    "home/.agent/skills",
    "home/.agents/skills",
    "home/.claude/skills",
    "project/.cursor/skills",
    "home/.codex/skills",
    "home/.cursor/skills",
    "home/.gemini/skills",
    "home/.codeium/windsurf/skills",
    "home/.config/opencode/skills",
]


def test_of_two_places_with_one_name_the_stronger_counts(world: SkillFolders) -> None:
    for place in SKILL_FOLDERS:
        write_skill(world.folder / place / "pdf", f"From {place}")

    for number, place in enumerate(SKILL_FOLDERS):
        catalogue = load_catalogue(world, skill_dirs=(world.custom,))
        assert catalogue.find("pdf").description == f"From {place}"
        assert len(catalogue.shadowed) == len(SKILL_FOLDERS) - number - 1
        (world.folder / place / "pdf" / "SKILL.md").unlink()


def test_every_place_has_a_label_of_its_own(world: SkillFolders) -> None:
    (world.project / ".git").mkdir(parents=True)
    settings = world.build_settings(
        project_dir=world.project / "a" / "b",
        skill_dirs=(world.custom, world.folder / "more"),
    )

    labels = [source.label for source in list_sources(settings)]

    assert len(labels) == len(set(labels))
    assert labels[:2] == ["custom", "custom-2"]
    assert {"project/claude", "project/up1/claude", "project/up2/claude"} < set(labels)


def test_the_project_is_searched_up_to_the_root_of_its_repository(world: SkillFolders) -> None:
    (world.project / ".git").mkdir(parents=True)
    write_skill(world.project / ".agents" / "skills" / "whole")
    write_skill(world.project / "packages" / "app" / ".claude" / "skills" / "part")
    write_skill(world.folder / ".claude" / "skills" / "stranger")

    inside = list_skill_names(world, project_dir=world.project / "packages" / "app" / "src")

    assert inside == ["part", "whole"]


def test_outside_a_repository_only_the_folder_itself_counts(world: SkillFolders) -> None:
    write_skill(world.project / ".claude" / "skills" / "above")

    assert list_skill_names(world, project_dir=world.project / "below") == []


def test_what_lies_in_the_home_folder_is_the_users_wherever_one_works(world: SkillFolders) -> None:
    world.write_user_skill("pdf")
    (world.home / ".git").mkdir()

    catalogue = load_catalogue(world, project_dir=world.home / "notes")

    assert [skill.source.scope for skill in catalogue.skills] == ["user"]


def test_a_named_folder_may_itself_be_a_skill_and_hold_others(world: SkillFolders) -> None:
    write_skill(world.custom, name="whole")
    write_skill(world.custom / "skills" / "part")

    assert list_skill_names(world, skill_dirs=(world.custom,)) == ["part", "whole"]
    assert list_problem_codes(world, skill_dirs=(world.custom,)) == []


def test_a_skill_may_hold_others_but_not_among_its_material(world: SkillFolders) -> None:
    world.write_user_skill("router")
    write_skill(world.claude / "skills" / "router" / "auth")
    write_skill(world.claude / "skills" / "router" / "auth" / "tokens")
    write_skill(world.claude / "skills" / "router" / "assets" / "template")

    catalogue = load_catalogue(world)

    assert [skill.full_name for skill in catalogue.skills] == ["auth", "router", "tokens"]
    assert catalogue.find("tokens").uri == "skill://user/claude/router/auth/tokens/SKILL.md"
    assert catalogue.problems == []


def test_a_skill_put_into_another_is_found_by_the_next_refresh(world: SkillFolders) -> None:
    for name in ("a", "b", "c"):
        world.write_user_skill(name)
    library = SkillLibrary(world.build_settings())
    before = library.refresh()
    write_skill(world.claude / "skills" / "b" / "inner")

    after = library.refresh()

    assert [len(edition.catalogue.skills) for edition in (before, after)] == [3, 4]


def test_the_search_goes_six_folders_deep_and_skips_what_is_never_a_skill(world: SkillFolders) -> None:
    base = world.claude / "skills"
    write_skill(base / "1" / "2" / "3" / "4" / "5" / "6" / "deep")
    write_skill(base / "1" / "2" / "3" / "4" / "5" / "6" / "7" / "deeper")
    for name in (".git", "node_modules"):
        write_skill(base / name / "hidden")

    assert list_skill_names(world) == ["deep"]


def test_links_are_followed_once_and_a_circle_ends(world: SkillFolders) -> None:
    base = world.claude / "skills"
    elsewhere = write_skill(world.folder / "elsewhere" / "linked").parent
    world.write_user_skill("real")
    (base / "linked").symlink_to(elsewhere)
    (base / "again").symlink_to(elsewhere)
    (base / "circle").symlink_to(base)
    (base / "collection").symlink_to(elsewhere.parent)
    (base / "nowhere").symlink_to(world.folder / "nothing")

    assert sorted(list_skill_names(world)) == ["linked", "real"]


def test_a_skill_behind_another_name_keeps_the_link_as_its_folder(world: SkillFolders) -> None:
    elsewhere = write_skill(world.folder / "elsewhere" / "pdf").parent
    link = world.claude / "skills" / "pdf"
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)

    assert load_catalogue(world).find("pdf").folder == str(link)


def test_a_disk_full_of_folders_is_not_searched_for_ever(world: SkillFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MAX_SCANNED_FOLDERS", 10)
    for number in range(20):
        (world.claude / "skills" / f"empty-{number:02}").mkdir(parents=True)
    world.write_user_skill("aaa")

    assert list_skill_names(world) == ["aaa"]
    assert list_problem_codes(world) == ["too-many-folders"]


def test_a_file_in_lower_case_loads_with_a_word_about_it(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf")
    path.rename(path.with_name("skill.md"))

    assert list_skill_names(world) == ["pdf"]
    assert list_problem_codes(world) == ["file-name"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": "Not_Right"}, "name-rules"),
        ({"name": "other"}, "name-folder"),
        ({"name": "a--b"}, "name-rules"),
        ({"name": "x" * 65}, "name-length"),
        ({"description": "x" * 1025}, "description-length"),
        ({"description": "Use when: asked"}, "yaml"),
        ({"name": ""}, "no-name"),
    ],
)
def test_a_skill_that_breaks_a_rule_is_loaded_and_the_rule_named(
    world: SkillFolders, fields: dict[str, str], code: str
) -> None:
    header_fields = {"name": "pdf", "description": "d", **fields}
    header = "".join(f"{key}: {value}\n" for key, value in header_fields.items())
    write_old_file(world.claude / "skills" / "pdf" / "SKILL.md", f"---\n{header}---\n")

    catalogue = load_catalogue(world)

    assert len(catalogue.skills) == 1
    assert code in [problem.code for problem in catalogue.problems]
    assert not catalogue.skills[0].publishable


def test_one_header_that_leads_into_itself_costs_no_other_skill(world: SkillFolders) -> None:
    world.write_user_skill("pdf")
    write_old_file(
        world.claude / "skills" / "knot" / "SKILL.md",
        "---\nname: knot\ndescription: a knot\nx: &x [*x]\n---\n",
    )

    assert list_skill_names(world) == ["knot", "pdf"]
    assert list_problem_codes(world) == ["yaml"]


def test_what_would_move_a_terminal_is_left_out_of_a_description(world: SkillFolders) -> None:
    description_text = r'"\e[31mred\a\0\x9b1m text"'
    write_old_file(
        world.claude / "skills" / "red" / "SKILL.md", f"---\nname: red\ndescription: {description_text}\n---\n"
    )

    [skill] = load_catalogue(world).skills

    assert skill.description == "[31mred 1m text"


def test_a_named_folder_that_is_not_there_is_mentioned_and_others_are_not(world: SkillFolders) -> None:
    assert list_problem_codes(world, skill_dirs=(world.custom,)) == ["no-folder"]
    assert list_problem_codes(world) == []


def test_a_folder_that_cannot_be_read_is_mentioned_for_as_long_as_it_cannot(world: SkillFolders) -> None:
    file = write_old_file(world.custom, "no folder")
    library = SkillLibrary(world.build_settings(skill_dirs=(file,)))

    problem_lists = [library.refresh().catalogue.problems for _ in range(3)]

    assert [[problem.code for problem in problems] for problems in problem_lists] == [["no-folder"]] * 3


@pytest.mark.parametrize(
    ("include", "exclude", "expected_names"),
    [
        ((), (), ["deploy", "docx", "pdf", "user", "office:pdf", "office:xlsx"]),
        (("pdf",), (), ["pdf", "office:pdf"]),
        (("PDF",), ("office:*",), ["pdf"]),
        (("*x*",), (), ["docx", "office:xlsx"]),
        (("root:user",), (), ["docx", "pdf", "user"]),
        (("root:project", "plugin:office"), ("xlsx",), ["deploy", "office:pdf"]),
        ((), ("plugin:*",), ["deploy", "docx", "pdf", "user"]),
        ((), ("root:claude",), ["office:pdf", "office:xlsx"]),
        ((), ("user",), ["deploy", "docx", "pdf", "office:pdf", "office:xlsx"]),
        ((), ("plugin:office@market", "root:user/claude"), ["deploy"]),
    ],
)
def test_skills_are_chosen_by_name_glob_place_and_plugin(
    world: SkillFolders, include: tuple[str, ...], exclude: tuple[str, ...], expected_names: list[str]
) -> None:
    world.write_project_skill("deploy")
    for name in ("pdf", "docx", "user"):
        world.write_user_skill(name)
    world.write_plugins(office=["pdf", "xlsx"])

    assert list_skill_names(world, skill_include=include, skill_exclude=exclude) == expected_names
    assert list_problem_codes(world, skill_include=include, skill_exclude=exclude) == []


def test_a_pattern_that_fits_nothing_is_mentioned(world: SkillFolders) -> None:
    world.write_user_skill("pdf")

    assert list_problem_codes(world, skill_exclude=("pfd",)) == ["filter"]


class TestPlugins:
    """Claude's plugins, as described by its own files."""

    def test_both_layouts_of_the_manifest_are_read(self, world: SkillFolders) -> None:
        cache = world.claude / "plugins" / "cache"
        write_skill(cache / "one" / "skills" / "a")
        write_skill(cache / "two" / "skills" / "b")
        world.write_plugin_manifest({"one@m": {"version": "1", "installPath": str(cache / "one")}})
        first = list_skill_names(world)
        world.write_plugin_manifest(
            {"two@m": [{"scope": "user", "installPath": str(cache / "two")}], "nonsense": {}}, 2
        )
        second = list_skill_names(world)

        assert (first, second) == (["one:a"], ["two:b"])

    def test_a_record_counts_only_in_its_own_project(self, world: SkillFolders) -> None:
        cache = world.claude / "plugins" / "cache"
        for version in ("theirs", "ours", "everyones"):
            write_skill(cache / version / "skills" / version)
        records = [
            {"scope": "project", "projectPath": "/elsewhere", "installPath": "cache/theirs"},
            {"scope": "user", "installPath": "cache/everyones"},
            {
                "scope": "local",
                "projectPath": str(world.project),
                "installPath": "cache/ours",
            },
        ]
        world.write_plugin_manifest({"p@m": records[:2]}, 2)
        names_elsewhere = list_skill_names(world)
        world.write_plugin_manifest({"p@m": records}, 2)
        names_here = list_skill_names(world)

        assert (names_elsewhere, names_here) == (["p:everyones"], ["p:ours"])

    @pytest.mark.parametrize(
        ("user", "project", "local", "on"),
        [
            (None, None, None, True),
            ({"p@m": True}, None, None, True),
            ({"p@m": False}, None, None, False),
            ({"other@m": True}, None, None, False),
            ({"p@m": True}, {"p@m": False}, None, False),
            ({"p@m": False}, {"p@m": True}, None, True),
            ({"p@m": True}, {"p@m": True}, {"p@m": False}, False),
            ({}, {"other@m": True}, {"p@m": True}, True),
        ],
    )
    def test_the_nearest_list_says_whether_a_plugin_is_on(
        self,
        world: SkillFolders,
        user: dict[str, bool] | None,
        project: dict[str, bool] | None,
        local: dict[str, bool] | None,
        on: bool,
    ) -> None:
        world.write_plugins(p=["a"])
        manifest = world.claude / "plugins" / "installed_plugins.json"
        manifest.write_text(manifest.read_text().replace("@market", "@m"))
        for path, switches in (
            (world.claude / "settings.json", user),
            (world.project / ".claude" / "settings.json", project),
            (world.project / ".claude" / "settings.local.json", local),
        ):
            if switches is not None:
                write_old_file(path, json.dumps({"enabledPlugins": switches}))

        assert list_skill_names(world) == (["p:a"] if on else [])

    def test_two_plugins_that_share_a_folder_have_only_what_their_marketplace_says(self, world: SkillFolders) -> None:
        folder = world.claude / "plugins" / "cache" / "all"
        for name in ("pdf", "xlsx", "art"):
            write_skill(folder / "skills" / name)
        offers = [
            {"name": "office", "source": "./", "skills": ["./skills/pdf", "./skills/xlsx"]},
            {"name": "fun", "source": "./", "skills": ["./skills/art"]},
        ]
        write_old_file(folder / ".claude-plugin" / "marketplace.json", json.dumps({"plugins": offers}))
        record = {"installPath": "cache/all"}
        world.write_plugin_manifest({"office@m": record, "fun@m": record})

        assert list_skill_names(world) == ["office:pdf", "office:xlsx", "fun:art"]
        assert list_problem_codes(world) == []

    def test_a_plugin_may_name_folders_of_its_own_but_none_outside(self, world: SkillFolders) -> None:
        folder = world.claude / "plugins" / "cache" / "p"
        for place in ("skills/usual", "extra/own", "not-listed/hidden"):
            write_skill(folder / place)
        write_skill(world.claude / "plugins" / "cache" / "outside")
        manifest = {"name": "p", "skills": ["./extra", "../outside"]}
        write_old_file(folder / ".claude-plugin" / "plugin.json", json.dumps(manifest))
        world.write_plugin_manifest({"p@m": {"installPath": "cache/p"}})

        assert list_skill_names(world) == ["p:usual", "p:own"]
        assert list_problem_codes(world) == ["plugin-path"]

    def test_a_broken_manifest_is_mentioned_and_hides_nothing_else(self, world: SkillFolders) -> None:
        world.write_user_skill("pdf")
        write_old_file(world.claude / "plugins" / "installed_plugins.json", "{")

        assert list_skill_names(world) == ["pdf"]
        assert list_problem_codes(world) == ["bad-json"]

    @pytest.mark.parametrize(
        "record",
        [
            {"installPath": "cache/\0"},
            {"installPath": "x" * 5000},
            {"installPath": "\ud800"},
            {"installPath": ["cache/odd"]},
            {"installPath": "cache/odd", "scope": ["project"]},
            {"installPath": "cache/odd", "scope": {}, "projectPath": 5},
            {"installPath": "cache/odd", "scope": "project", "projectPath": "\0"},
            {"installPath": "cache/odd"},
        ],
        ids=lambda record: repr(record)[:50],
    )
    def test_a_manifest_that_says_nonsense_of_one_plugin_costs_no_other(
        self, world: SkillFolders, record: dict[str, object]
    ) -> None:
        world.write_plugins(office=["pdf"])
        world.write_plugin_manifest({"odd@market": record, "office@market": {"installPath": "cache/office"}})
        odd = world.claude / "plugins" / "cache" / "odd" / ".claude-plugin" / "plugin.json"
        write_old_file(odd, json.dumps({"skills": ["\0", "\ud800", "y" * 5000, {}]}))

        assert [skill.full_name for skill in load_catalogue(world).skills] == ["office:pdf"]

    def test_the_same_name_from_two_marketplaces_can_be_told_apart(self, world: SkillFolders) -> None:
        cache = world.claude / "plugins" / "cache"
        write_skill(cache / "1" / "a", "First")
        write_skill(cache / "2" / "a", "Second")
        world.write_plugin_manifest({"p@one": {"installPath": "cache/1"}, "p@two": {"installPath": "cache/2"}})
        catalogue = load_catalogue(world)

        assert catalogue.find("p:a").description == "First"
        assert catalogue.find("p@two:a").description == "Second"


def test_the_options_of_serve_say_which_skills_count(world: SkillFolders) -> None:
    world.write_user_skill("pdf")
    world.write_user_skill("docx")
    world.write_plugins(office=["xlsx"])
    write_skill(world.custom / "own")
    options = ["--skill-dir", str(world.custom), "--no-plugins", "--exclude", "docx"]

    with world.serve(*options) as peer:
        listed_text = read_skill_description(peer)
        text = load_skill(peer, "own")

    assert [line for line in listed_text.splitlines() if line.startswith("- ")] == [
        "- own: Knows own",
        "- pdf: Knows pdf",
    ]
    assert f"Base directory: {world.custom / 'own'}\n" in text


def test_a_repository_cannot_name_folders_outside_itself(world: SkillFolders, shell: Shell) -> None:
    (shell.folder / ".cleats.toml").write_text('skill_dirs = ["/"]')

    refusal = shell.run("skills", "list")

    assert refusal.returncode == 2
    assert "skill_dirs cannot be set by a repository" in refusal.stderr


def test_a_look_sees_every_change_and_nothing_else(world: SkillFolders) -> None:
    library = SkillLibrary(world.build_settings())
    base = world.claude / "skills"
    steps: list[Callable[[], object]] = [
        lambda: world.write_user_skill("one"),
        lambda: write_skill(base / "group" / "two"),
        lambda: (base / "one" / "SKILL.md").rename(base / "one" / ".SKILL.md"),
        lambda: (base / "one" / ".SKILL.md").rename(base / "one" / "SKILL.md"),
        lambda: (base / "group").rename(base / "renamed"),
        lambda: write_skill(base / "renamed" / "two", "Changed"),
        lambda: write_old_file(base / "renamed" / "SKILL.md", "---\nname: renamed\ndescription: d\n---\n"),
        (base / "renamed" / "SKILL.md").unlink,
        (base / "one" / "SKILL.md").unlink,
    ]
    seen_names = []
    for step in steps:
        step()
        edition = library.refresh()
        assert library.refresh().catalogue.skills == edition.catalogue.skills
        fresh = SkillLibrary(world.build_settings()).catalogue
        assert [s.path for s in edition.catalogue.skills] == [s.path for s in fresh.skills]
        seen_names.append([s.full_name for s in edition.catalogue.skills])

    assert seen_names == [
        ["one"],
        ["one", "two"],
        ["two"],
        ["one", "two"],
        ["one", "two"],
        ["one", "two"],
        ["one", "renamed", "two"],
        ["one", "two"],
        ["two"],
    ]


def test_a_look_at_an_unchanged_disk_keeps_the_very_same_catalogue(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf")
    for folder in (path.parent, path.parent.parent):
        os.utime(folder, (1, 1))
    library = SkillLibrary(world.build_settings())

    first = library.refresh()

    assert library.refresh() is first
