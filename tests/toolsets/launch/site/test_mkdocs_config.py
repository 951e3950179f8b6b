"""Tests of the configuration of MkDocs sites: what is read, and what keeps a site from being built."""

import importlib
from pathlib import Path

import pytest
import yaml

from cleats.toolsets.launch.site.mkdocs import parse_mkdocs_config
from cleats.toolsets.launch.site.mkdocs_kind import MkDocsKind
from cleats.toolsets.launch.site.mkdocs_urls import MkDocsUrlRules, make_file_link
from cleats.toolsets.launch.site.pages import list_headings


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("hooks: [evil.py]", "hooks is not allowed: it runs Python files of the site"),
        ("INHERIT: ../other.yml", "INHERIT is not allowed: it reads another configuration"),
        ("extra_templates: [a.html]", "extra_templates is not allowed: it runs templates of the site"),
        ("plugins: [search, macros]", "the plugin macros is not allowed: a plugin is a program; only search is"),
        ("plugins: {gen-files: {scripts: [a.py]}}", "the plugin gen-files is not allowed"),
        ("plugins: [search: {prebuild_index: node}]", "prebuild_index of the plugin search is not allowed"),
        ("theme: {name: mkdocs, custom_dir: overrides}", "custom_dir of the theme is not allowed"),
        ("theme: {name: readthedocs, static_templates: [a]}", "static_templates of the theme is not allowed"),
        ("theme: material", "the theme material is not allowed: only mkdocs and readthedocs are"),
        ("theme: {name: null}", "the theme None is not allowed"),
        ("markdown_extensions: [pymdownx.snippets]", "the extension pymdownx.snippets is not allowed"),
        ("markdown_extensions: {evil: {}}", "the extension evil is not allowed"),
        ("extra: {a: !!python/name:os.system }", "the tag !!python/name:os.system is not allowed: only plain data is"),
        ("extra: !!python/object/apply:os.system [id]", "the tag !!python/object/apply:os.system is not allowed"),
        ("extra: {a: !ENV HOME}", "the tag !ENV is not allowed: only plain data is"),
        ("docs_dir: ../secrets", "docs_dir is outside the site"),
        ("docs_dir: /etc", "docs_dir is outside the site"),
        ("pre_build: true", "pre_build is not a setting of MkDocs 1.6"),
    ],
)
def test_a_setting_that_could_run_code_or_read_elsewhere_is_refused_with_its_line(setting: str, message: str) -> None:
    config = parse_mkdocs_config("mkdocs.yml", f"site_name: Packages\n\n{setting}\n")

    assert [(refusal.line, refusal.message[: len(message)]) for refusal in config.refusals] == [(3, message)]


def test_an_ordinary_configuration_is_built_from_a_copy_that_has_only_its_checked_settings() -> None:
    config = parse_mkdocs_config(
        "mkdocs.yml",
        "site_name: Packages\ndocs_dir: pages\nsite_dir: ../out\nstrict: false\nwatch: [/etc]\nhooks: []\n"
        "theme: {name: readthedocs, locale: de}\nplugins: [search: {lang: en}]\n"
        "markdown_extensions: [toc: {permalink: true}, markdown.extensions.admonition]\n",
    )

    assert config.refusals == ()
    assert yaml.safe_load(config.render_build_file(Path("/site"))) == {
        "site_name": "Packages",
        "docs_dir": "/site/pages",
        "hooks": [],
        "theme": {"name": "readthedocs", "locale": "de"},
        "plugins": [{"search": {"lang": "en"}}],
        "markdown_extensions": [{"toc": {"permalink": True}}, "markdown.extensions.admonition"],
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- a\n- b\n", "it is not a table of settings"),
        ("site_name: [\n", "while parsing"),
        ("a: &a [x]\n" + "".join(f"b{number}: *a\n" for number in range(30)), "it has more than 20 aliases"),
        ("a: " + "[" * 3000 + "]" * 3000, "it is nested too deeply"),
        ("a: !!int {}\n", "expected a scalar node"),
        ("# " + "x" * 300_000, "it is not a text of a usual size"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_empty_and_says_why(text: str, fault: str) -> None:
    config = parse_mkdocs_config("mkdocs.yml", text)

    assert config.fault.startswith(fault)
    assert (config.document, config.docs_folder) == ({}, "docs")


@pytest.mark.parametrize(
    ("path", "with_folders", "with_files"),
    [
        ("docs/index.md", "/kits/", "/kits/index.html"),
        ("docs/README.md", "/kits/", "/kits/index.html"),
        ("docs/Kit/index.md", "/kits/Kit/", "/kits/Kit/index.html"),
        ("docs/kit/first-steps.md", "/kits/kit/first-steps/", "/kits/kit/first-steps.html"),
        ("docs/kit/logo.svg", "/kits/kit/logo.svg", "/kits/kit/logo.svg"),
        ("other/page.md", None, None),
    ],
)
def test_the_address_of_a_page_follows_from_its_file(
    path: str, with_folders: str | None, with_files: str | None
) -> None:
    text = "site_url: https://docs.example.org/kits\n"
    rules, file_rules = (
        MkDocsUrlRules.from_config(parse_mkdocs_config("mkdocs.yml", f"{text}{setting}"))
        for setting in ("", "use_directory_urls: false\n")
    )

    assert (rules.resolve_url_path(path), file_rules.resolve_url_path(path)) == (with_folders, with_files)
    assert rules.resolve_origin("en") == "https://docs.example.org"


def test_pages_link_to_files_and_such_a_link_has_the_address_of_the_file() -> None:
    rules = MkDocsUrlRules()
    link = make_file_link("docs/kit/reference/index.md", "docs/kit/install.md")

    assert link == "../install.md"
    assert rules.resolve_file_link("docs/kit/reference/index.md", link) == "/kit/install/"
    assert rules.resolve_file_link("docs/kit/install.md", "../../../secret.md") is None
    assert rules.resolve_file_link("docs/kit/install.md", "/kit/") is None


def test_the_anchors_of_headings_are_those_of_python_markdown() -> None:
    markdown = importlib.import_module("markdown")  # the oracle, which has no types

    text = "# C++ & Go\n\n## `a_b.c()` - Über\n\n## Same\n\n## Same\n\n### Same\n\n## 日本\n\n## a -- b\n"
    parser = markdown.Markdown(extensions=["toc"])
    html = parser.convert(text)

    anchors = MkDocsKind().list_anchors(list_headings(text))

    assert all(f'id="{anchor}"' in html for anchor in anchors)
    assert len(set(anchors)) == len(anchors) == 7
