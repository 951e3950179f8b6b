"""Tests of profiles: the built-in ones, custom ones, and the errors of a bad one."""

import shutil
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.gates.registry import GATE_NAMES
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.profiles.parts import fill_template, match_path
from tests.support.paths import REPOSITORY_ROOT

FAMILY_NAMES = [
    "3d",
    "barcode",
    "cad",
    "cells",
    "diagram",
    "email",
    "finance",
    "font",
    "gis",
    "html",
    "imaging",
    "note",
    "ocr",
    "page",
    "pdf",
    "psd",
    "slides",
    "svg",
    "tasks",
    "tex",
    "words",
    "zip",
]
PLATFORM_NAMES = [
    "android",
    "cpp",
    "dotnet",
    "go",
    "java",
    "javascript",
    "net",
    "nodejs",
    "php",
    "python",
    "ruby",
    "rust",
    "swift",
    "typescript",
    "kotlin",
]


def test_the_aspose_profile_knows_its_families_platforms_and_hosts() -> None:
    profile = model.load_named_profile("aspose")

    assert [product_family.name for product_family in profile.families.known] == FAMILY_NAMES
    assert all(profile.find_platform(name) for name in PLATFORM_NAMES)
    assert sorted(profile.sections_by_host) == [
        f"{name}.aspose.org" for name in ("blog", "docs", "kb", "products", "reference")
    ]


@pytest.mark.parametrize("name", ["aspose", "plain", "plain-mkdocs"])
def test_a_built_in_profile_asks_only_for_gates_that_are_there(name: str) -> None:
    gates = model.load_named_profile(name).gates

    for level in ("local", "ci", "prod"):
        assert set(gates.for_profile(level)) <= set(GATE_NAMES)
    assert "external_links" not in gates.local
    assert set(gates.local) <= set(gates.ci) <= set(gates.prod)


@pytest.mark.parametrize("name", ["aspose", "plain", "plain-mkdocs"])
def test_what_a_profile_lets_be_written_holds_every_page_it_plans(name: str) -> None:
    profile = model.load_named_profile(name)
    layout = profile.resolve_layout("auto", "python")
    place = {"layout": layout, "family": "3d", "platform": "python"}

    for section in profile.sections:
        for locale in ("en", "de"):
            [allowed] = profile.list_allowed_paths([section.name], locales=[locale], **place)
            for page in section.pages:
                path = profile.build_page_path(section.name, page.slug, locale=locale, **place)
                assert path.startswith(f"{allowed}/")


def test_two_pages_of_a_profile_never_share_a_path_or_an_address() -> None:
    for profile in model.load_all_profiles():
        place = {"layout": profile.site.layout, "family": "3d", "platform": "python"}
        locations = [
            (make(section.name, page.slug, locale=locale, **place), section.host)
            for section in profile.sections
            for page in section.pages
            for locale in ("en", "de")
            for make in (profile.build_page_path, profile.build_page_url)
        ]
        assert len(locations) == len(set(locations))


def copy_profile(tmp_path: Path, name: str = "mine", **changes: str) -> Path:
    """Create a custom profile: a copy of the built-in one with some text changed."""
    folder = tmp_path / "profiles" / name
    shutil.copytree(model.BUILTIN_PROFILES_FOLDER / "plain", folder)
    file = folder / model.PROFILE_FILE_NAME
    text = file.read_text().replace('name = "plain"', f'name = "{name}"', 1)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    return folder


def test_a_folder_of_the_operator_holds_profiles_or_is_one(tmp_path: Path) -> None:
    folder = copy_profile(tmp_path)

    assert model.load_named_profile("mine", [folder.parent]).name == "mine"
    assert model.load_named_profile("mine", [folder]).folder == folder
    assert set(model.find_profile_folders([folder])) == {"mine", "aspose", "plain", "plain-mkdocs"}


def test_one_of_the_operators_replaces_a_built_in_of_the_same_name(tmp_path: Path) -> None:
    folder = copy_profile(tmp_path, "plain")

    assert model.load_named_profile("plain", [folder.parent]).folder == folder


def test_a_profile_that_was_edited_is_read_again(tmp_path: Path) -> None:
    folder = copy_profile(tmp_path)
    file = folder / model.PROFILE_FILE_NAME
    model.load_named_profile("mine", [folder])
    file.write_text(file.read_text().replace('version = "1.0.0"', 'version = "1.0.1"'))

    assert model.load_named_profile("mine", [folder]).version == "1.0.1"


def write_profile(root: Path, name: str, extends: str, text: str = "") -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    head = f'schema_version = "1.0"\nname = "{name}"\ntitle = "{name}"\nextends = "{extends}"\n'
    (folder / model.PROFILE_FILE_NAME).write_text(head + text)
    return folder


def test_a_profile_has_the_values_and_templates_of_the_one_it_extends(tmp_path: Path) -> None:
    plain = model.load_named_profile("plain-mkdocs")
    team = write_profile(tmp_path, "team", "plain-mkdocs", '[site]\nrepo_url = "/srv/docs"\ndefault_locale = "en"\n')
    write_profile(tmp_path, "ours", "team", '[brand]\nproduct_name = "Acme {family}"\n')

    profile = model.load_named_profile("ours", [tmp_path])
    (team / model.PROFILE_FILE_NAME).write_text((team / model.PROFILE_FILE_NAME).read_text().replace("/srv", "/new"))
    edited = model.load_named_profile("ours", [tmp_path])

    assert (profile.title, profile.site.kind, profile.site.repo_url) == ("ours", "mkdocs", "/srv/docs")
    assert (profile.sections, profile.gates, profile.version) == (plain.sections, plain.gates, plain.version)
    assert profile.format_product_name("kit", "python") == "Acme kit"
    assert profile.templates_folder == model.load_named_profile("plain").templates_folder
    assert edited.site.repo_url == "/new/docs"


@pytest.mark.parametrize(
    ("extends", "text", "fault"),
    [
        ("nobody", "", "/extends: cannot extend 'nobody'"),
        ("mine", "", "/extends: cannot extend 'mine'"),
        ("../profiles/plain", "", "/extends: cannot extend '../profiles/plain'"),
        ("other", "", "/extends: cannot extend 'mine'"),
        ("plain", '[site]\nkind = "mkdocs"\n', "hugo_config is not a gate of mkdocs sites"),
        ("plain", '[site]\nkind = "jekyll"\n', "/site/kind"),
    ],
)
def test_a_profile_that_cannot_extend_another_is_refused(tmp_path: Path, extends: str, text: str, fault: str) -> None:
    write_profile(tmp_path, "other", "mine")
    write_profile(tmp_path, "mine", extends, text)

    with pytest.raises(ToolError) as caught:
        model.load_named_profile("mine", [tmp_path])

    assert caught.value.code is ErrorCode.SCHEMA_VALIDATION_FAILED
    assert fault in caught.value.message


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ('name = "mine"', 'name = "mine', ""),
        ('title = "A plain Hugo documentation site"', "", ""),
        ('localization = "filename"', 'localization = "file"', "/sections/0/localization"),
        ('role = "toc"', 'role = "index"', "/sections/0/pages/0/role"),
        ('default_locale = "en"', 'default_locale = "xx"', "/site/default_locale"),
        ('paths.v1 = "{root}/', 'paths.v1 = "{folder}/', "/sections/0/paths/v1"),
        ('layout = "v1"', 'layout = "v2"', "/sections/0/paths/v2"),
        ('environment = "production"', 'colour = "red"', "/site/colour"),
        ('root = "docs"', 'root = "../docs"', "/sections/0/root"),
        ("Documentation of {product_name}", "{who}", "/publishing/pr_title"),
        ('branch = "launch/{run_id}', 'branch = "{product_name}', "/publishing/branch"),
    ],
)
def test_a_bad_profile_is_refused_with_the_place_of_the_fault(tmp_path: Path, old: str, new: str, path: str) -> None:
    folder = copy_profile(tmp_path)
    file = folder / model.PROFILE_FILE_NAME
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))

    with pytest.raises(ToolError) as caught:
        model.load_named_profile("mine", [folder])

    assert caught.value.code is ErrorCode.SCHEMA_VALIDATION_FAILED
    assert path in [violation["instancePath"] for violation in caught.value.details["violations"]]
    assert str(tmp_path) not in caught.value.message


def test_a_profile_has_the_name_of_its_folder(tmp_path: Path) -> None:
    folder = copy_profile(tmp_path).rename(tmp_path / "other")

    with pytest.raises(ToolError) as caught:
        model.load_named_profile("other", [folder])

    assert "/name" in caught.value.message


def test_two_platforms_cannot_go_by_one_name(tmp_path: Path) -> None:
    twice = 'name = "python", title = "Python", aliases = ["py", "python3"] },'
    more = f'{twice}\n  {{ name = "jython", title = "Jython", aliases = ["PY"] }},'
    folder = copy_profile(tmp_path, **{twice: more})

    with pytest.raises(ToolError) as caught:
        model.load_named_profile("mine", [folder])

    assert "'py' is already 'python'" in caught.value.message


def test_a_name_that_is_no_profile_lists_those_that_are() -> None:
    with pytest.raises(ToolError) as caught:
        model.load_named_profile("../aspose")

    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert caught.value.details == {"known": ["aspose", "plain", "plain-mkdocs"]}


def test_a_template_drops_the_slash_of_a_value_that_is_empty() -> None:
    assert fill_template("/{locale/}{family}/", {"locale": "", "family": "x"}) == "/x/"
    assert fill_template("/{locale/}{family}/", {"locale": "de", "family": "x"}) == "/de/x/"


def test_a_pattern_tells_a_locale_from_a_family_by_what_fits() -> None:
    def match_value(name: str, value: str) -> str | None:
        values_by_name = {"locale": {"id", "de"}, "family": {"id", "3d"}, "platform": {"go"}}
        return value if value in values_by_name[name] else None

    pattern = "{locale?}/{family}/{platform}"

    assert match_path(pattern, ["id", "id", "go"], match_value) == {
        "locale": "id",
        "family": "id",
        "platform": "go",
    }
    assert match_path(pattern, ["id", "go"], match_value) == {"family": "id", "platform": "go"}
    assert match_path(pattern, ["de", "go"], match_value) is None


def test_every_gate_is_on_the_page_about_profiles() -> None:
    page = (REPOSITORY_ROOT / "docs" / "writing-a-profile.md").read_text()

    assert [name for name in GATE_NAMES if f"| `{name}` |" not in page] == []
