"""Profiles: the built-in ones, one's own, and what is said about a bad one."""

import shutil
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.gates.registry import NAMES
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.profiles.templates import fill, match

FAMILIES = [
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
PLATFORMS = [
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
    profile = model.load("aspose")

    assert [each.name for each in profile.families.known] == FAMILIES
    assert all(profile.platform(name) for name in PLATFORMS)
    assert sorted(profile.hosts) == [
        f"{name}.aspose.org" for name in ("blog", "docs", "kb", "products", "reference")
    ]


@pytest.mark.parametrize("name", ["aspose", "plain"])
def test_a_built_in_profile_asks_only_for_gates_that_are_there(name: str) -> None:
    gates = model.load(name).gates

    for level in ("local", "ci", "prod"):
        assert set(gates.of(level)) <= set(NAMES)
    assert "external_links" not in gates.local
    assert set(gates.local) <= set(gates.ci) <= set(gates.prod)


@pytest.mark.parametrize("name", ["aspose", "plain"])
def test_what_a_profile_lets_be_written_holds_every_page_it_plans(name: str) -> None:
    profile = model.load(name)
    layout = profile.layout("auto", "python")
    place = {"layout": layout, "family": "3d", "platform": "python"}

    for section in profile.sections:
        for locale in ("en", "de"):
            [allowed] = profile.allowed_paths([section.name], locales=[locale], **place)
            for page in section.pages:
                path = profile.page_path(section.name, page.slug, locale=locale, **place)
                assert path.startswith(f"{allowed}/")


def test_two_pages_of_a_profile_never_share_a_path_or_an_address() -> None:
    for profile in model.every():
        place = {"layout": profile.site.layout, "family": "3d", "platform": "python"}
        seen = [
            (make(each.name, page.slug, locale=locale, **place), each.host)
            for each in profile.sections
            for page in each.pages
            for locale in ("en", "de")
            for make in (profile.page_path, profile.page_url)
        ]
        assert len(seen) == len(set(seen))


def own(tmp_path: Path, name: str = "mine", **changes: str) -> Path:
    """A profile of one's own: a copy of ours with some text changed."""
    folder = tmp_path / "profiles" / name
    shutil.copytree(model.OURS / "plain", folder)
    file = folder / model.FILE
    text = file.read_text().replace('name = "plain"', f'name = "{name}"', 1)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    return folder


def test_a_folder_of_the_operator_holds_profiles_or_is_one(tmp_path: Path) -> None:
    folder = own(tmp_path)

    assert model.load("mine", [folder.parent]).name == "mine"
    assert model.load("mine", [folder]).folder == folder
    assert set(model.places([folder])) == {"mine", "aspose", "plain"}


def test_one_of_the_operators_replaces_a_built_in_of_the_same_name(tmp_path: Path) -> None:
    folder = own(tmp_path, "plain")

    assert model.load("plain", [folder.parent]).folder == folder


def test_a_profile_that_was_edited_is_read_again(tmp_path: Path) -> None:
    folder = own(tmp_path)
    file = folder / model.FILE
    model.load("mine", [folder])
    file.write_text(file.read_text().replace('version = "1.0.0"', 'version = "1.0.1"'))

    assert model.load("mine", [folder]).version == "1.0.1"


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
def test_a_bad_profile_is_refused_with_the_place_of_the_fault(
    tmp_path: Path, old: str, new: str, path: str
) -> None:
    folder = own(tmp_path)
    file = folder / model.FILE
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))

    with pytest.raises(ToolError) as caught:
        model.load("mine", [folder])

    assert caught.value.code is ErrorCode.SCHEMA_VALIDATION_FAILED
    assert path in [each["instancePath"] for each in caught.value.details["violations"]]
    assert str(tmp_path) not in caught.value.message


def test_a_profile_has_the_name_of_its_folder(tmp_path: Path) -> None:
    folder = own(tmp_path).rename(tmp_path / "other")

    with pytest.raises(ToolError) as caught:
        model.load("other", [folder])

    assert "/name" in caught.value.message


def test_two_platforms_cannot_go_by_one_name(tmp_path: Path) -> None:
    twice = 'name = "python", title = "Python", aliases = ["py", "python3"] },'
    more = f'{twice}\n  {{ name = "jython", title = "Jython", aliases = ["PY"] }},'
    folder = own(tmp_path, **{twice: more})

    with pytest.raises(ToolError) as caught:
        model.load("mine", [folder])

    assert "'py' is already 'python'" in caught.value.message


def test_a_name_that_is_no_profile_lists_those_that_are() -> None:
    with pytest.raises(ToolError) as caught:
        model.load("../aspose")

    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert caught.value.details == {"known": ["aspose", "plain"]}


def test_a_template_drops_the_slash_of_a_value_that_is_empty() -> None:
    assert fill("/{locale/}{family}/", {"locale": "", "family": "x"}) == "/x/"
    assert fill("/{locale/}{family}/", {"locale": "de", "family": "x"}) == "/de/x/"


def test_a_pattern_tells_a_locale_from_a_family_by_what_fits() -> None:
    def fits(name: str, value: str) -> str | None:
        known = {"locale": {"id", "de"}, "family": {"id", "3d"}, "platform": {"go"}}
        return value if value in known[name] else None

    pattern = "{locale?}/{family}/{platform}"

    assert match(pattern, ["id", "id", "go"], fits) == {
        "locale": "id",
        "family": "id",
        "platform": "go",
    }
    assert match(pattern, ["id", "go"], fits) == {"family": "id", "platform": "go"}
    assert match(pattern, ["de", "go"], fits) is None


def test_every_gate_is_on_the_page_about_profiles() -> None:
    page = (Path(__file__).parents[1] / "docs" / "writing-a-profile.md").read_text()

    assert [name for name in NAMES if f"| `{name}` |" not in page] == []
