"""Tests of names, versions, licences, commands and APIs, exactly as the package states them."""

import os
from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.launch.runs import artifacts
from cleats.toolsets.launch.source.api import declarations, javascript
from cleats.toolsets.launch.source.api.public_names import ApiSurface
from cleats.toolsets.launch.source.manifests import setuptools, xml_elements
from cleats.toolsets.launch.source.manifests.model import LocatedValue, PackageManifest
from cleats.toolsets.launch.source.text import documents
from tests.support.launch_sources import PYPROJECT_TEXT, extract_facts, list_claim_texts, write_tree

Files = dict[str, str | bytes]


def test_a_python_package_is_known_by_its_manifest_and_its_folders(tmp_path: Path) -> None:
    repository_facts = extract_facts(
        tmp_path,
        {"pyproject.toml": PYPROJECT_TEXT, "src/kettle/__init__.py": "", "tools/x/__init__.py": ""},
    )
    facts = repository_facts.product_facts

    assert facts["version"] == "1.4.0"
    assert facts["license"]["spdx_id"] == "MIT"
    assert facts["distribution"] == [
        {
            "method": "pip",
            "identifier": "py-kettle",
            "install_commands": ["pip install py-kettle"],
            "extras": ["steam"],
            "import_names": ["kettle"],
            "commands": ["kettle"],
            "claim_id": facts["distribution"][0]["claim_id"],
        }
    ]
    assert list_claim_texts(repository_facts) == [
        "Kettle is a library to boil water.",
        "Install Kettle with `pip install py-kettle`.",
        'The optional `steam` extra of Kettle is installed with `pip install "py-kettle[steam]"`.',
        "Python code imports Kettle as `kettle`.",
        "Installing Kettle provides the `kettle` command.",
        "Kettle requires Python 3.10 or later.",
        "Kettle is licensed under the MIT License (`MIT`).",
        "Kettle depends on `valve` at run time.",
        "The version of Kettle in this repository is 1.4.0.",
    ]


def test_the_same_repository_gives_the_same_bytes(tmp_path: Path) -> None:
    files: Files = {"pyproject.toml": PYPROJECT_TEXT, "src/kettle/__init__.py": "", "README.md": "# K\n"}

    first, second = extract_facts(tmp_path / "a", files), extract_facts(tmp_path / "b", files)

    assert artifacts.encode_canonical_json(first.product_facts) == artifacts.encode_canonical_json(second.product_facts)
    assert artifacts.encode_canonical_json(first.evidence_map) == artifacts.encode_canonical_json(second.evidence_map)
    assert str(tmp_path) not in artifacts.encode_canonical_json(first.evidence_map).decode()


SETUP_CFG = """\
[metadata]
name = py-kettle
version = attr: kettle.__version__
license = BSD 3-Clause
description = Boil water
[options]
python_requires = >=3.9
install_requires =
    valve>=2
    tin
[options.entry_points]
console_scripts =
    kettle = kettle.cli:main
"""
SETUP_PY = """\
from setuptools import setup
NAME = "py-kettle"
setup(
    name=NAME,
    version="2.0",
    license="Apache 2.0",
    python_requires=">=3.8",
    install_requires=["valve"],
    packages=["kettle"],
    description=open("README.md").read(),
)
"""
POETRY_PYPROJECT = """\
[tool.poetry]
name = "py-kettle"
version = "3.1.0"
license = "MIT"
description = "Boil water"
packages = [{ include = "kettle" }]
[tool.poetry.dependencies]
python = "^3.9"
valve = "^2.1"
turbine = { version = "1.0", optional = true }
[tool.poetry.extras]
steam = ["turbine"]
"""
FLIT_PYPROJECT = """\
[project]
name = "py-kettle"
dynamic = ["version", "description"]
[tool.flit.module]
name = "kettle"
"""
HATCH_PYPROJECT = """\
[project]
name = "py-kettle"
dynamic = ["version"]
[tool.hatch.version]
path = "src/kettle/__about__.py"
"""


@pytest.mark.parametrize(
    ("files", "version", "spdx", "runtime"),
    [
        (
            {"setup.cfg": SETUP_CFG, "kettle/__init__.py": '__version__ = "4.2"\n'},
            "4.2",
            "BSD-3-Clause",
            "Kettle requires Python 3.9 or later.",
        ),
        (
            {"setup.py": SETUP_PY, "kettle/__init__.py": ""},
            "2.0",
            "Apache-2.0",
            "Kettle requires Python 3.8 or later.",
        ),
        (
            {"pyproject.toml": POETRY_PYPROJECT, "kettle/__init__.py": ""},
            "3.1.0",
            "MIT",
            "Kettle requires a Python version that satisfies `^3.9`.",
        ),
        (
            {"pyproject.toml": FLIT_PYPROJECT, "kettle/__init__.py": '"""Boil."""\n__version__ = "5.0"\n'},
            "5.0",
            None,
            None,
        ),
        (
            {
                "pyproject.toml": HATCH_PYPROJECT,
                "src/kettle/__init__.py": "",
                "src/kettle/__about__.py": "__version__: str = '6.1'\n",
            },
            "6.1",
            None,
            None,
        ),
        (
            {"pyproject.toml": "[tool.ruff]\n", "setup.cfg": SETUP_CFG, "kettle/__init__.py": ""},
            None,
            "BSD-3-Clause",
            "Kettle requires Python 3.9 or later.",
        ),
    ],
)
def test_every_form_of_a_python_manifest_is_read(
    tmp_path: Path, files: Files, version: str | None, spdx: str | None, runtime: str | None
) -> None:
    repository_facts = extract_facts(tmp_path, files)
    facts = repository_facts.product_facts

    assert facts.get("version") == version
    assert facts.get("license", {}).get("spdx_id") == spdx
    assert facts["distribution"][0]["install_commands"] == ["pip install py-kettle"]
    assert facts["distribution"][0]["import_names"] == ["kettle"]
    assert runtime is None or runtime in list_claim_texts(repository_facts)


def test_a_manifest_that_leaves_things_to_a_tool_says_nothing_about_them(tmp_path: Path) -> None:
    manifest = '[project]\nname = "py-kettle"\ndynamic = ["version", "dependencies"]\n'
    repository_facts = extract_facts(tmp_path, {"pyproject.toml": manifest, "kettle/__init__.py": ""})

    assert "version" not in repository_facts.product_facts
    assert not [text for text in list_claim_texts(repository_facts) if "depend" in text]


PACKAGE_JSON = """\
{
  "name": "@tea/kettle",
  "version": "1.0.0",
  "license": "ISC",
  "description": "Modern water boiler library",
  "bin": "cli.js",
  "engines": { "node": ">= 18" },
  "types": "./dist/index.d.ts",
  "dependencies": { "valve": "^2.0.0" }
}
"""
POM_XML = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <groupId>org.tea</groupId>
  <artifactId>kettle</artifactId>
  <version>${revision}</version>
  <properties>
    <revision>1.2.0</revision>
    <maven.compiler.release>17</maven.compiler.release>
  </properties>
  <licenses><license><name>Apache License, Version 2.0</name></license></licenses>
  <dependencies>
    <dependency><groupId>org.tea</groupId><artifactId>valve</artifactId></dependency>
    <dependency>
      <groupId>junit</groupId><artifactId>junit</artifactId><scope>test</scope>
    </dependency>
  </dependencies>
</project>
"""
CSPROJ_XML = """\
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <TargetFrameworks>net8.0;netstandard2.0</TargetFrameworks>
    <PackageId>Tea.Kettle</PackageId>
    <Version>2.3.0</Version>
    <PackageLicenseExpression>MIT</PackageLicenseExpression>
  </PropertyGroup>
  <ItemGroup><PackageReference Include="Valve" Version="2.0" /></ItemGroup>
</Project>
"""
CARGO_TOML = """\
[package]
name = "tea-kettle"
version.workspace = true
license = "MIT OR Apache-2.0"
rust-version = "1.70"
[workspace.package]
version = "0.4.0"
[dependencies]
valve = "2"
steam = { version = "1", optional = true }
"""
GO_MOD = "module example.com/tea/kettle\n\ngo 1.22\n\nrequire (\n\texample.com/valve v2.0.0\n)\n"
COMPOSER_JSON = """\
{
  "name": "tea/kettle",
  "license": "MIT",
  "require": { "php": ">=8.1" },
  "autoload": { "psr-4": { "Tea\\\\Kettle\\\\": "src/" } }
}
"""
GEMSPEC_SOURCE = """\
Gem::Specification.new do |spec|
  spec.name = "tea-kettle"
  spec.version = Tea::VERSION
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.add_dependency "valve", "~> 2.0"
end
"""
SWIFT_MANIFEST = """\
// swift-tools-version: 5.9
let package = Package(
  name: "Kettle",
  products: [.library(name: "KettleKit", targets: [])]
)
"""
CMAKE_LISTS = """\
cmake_minimum_required(VERSION 3.20)
project(kettle VERSION 1.1.0 DESCRIPTION "Boil")
set(CMAKE_CXX_STANDARD 20)
install(TARGETS kettle)
"""
MAVEN_DEPENDENCY = """\
<dependency>
  <groupId>org.tea</groupId>
  <artifactId>kettle</artifactId>
  <version>1.2.0</version>
</dependency>"""

ECOSYSTEM_CASES: list[tuple[str, Files, dict[str, Any]]] = [
    (
        "javascript",
        {"package.json": PACKAGE_JSON},
        {
            "install": ["npm install @tea/kettle"],
            "imports": ["@tea/kettle"],
            "version": "1.0.0",
            "spdx": "ISC",
            "says": "Kettle requires Node.js 18 or later.",
        },
    ),
    (
        "java",
        {"pom.xml": POM_XML, "src/main/java/org/tea/Pot.java": "package org.tea;\nclass Pot {}\n"},
        {
            "install": [MAVEN_DEPENDENCY, 'implementation("org.tea:kettle:1.2.0")'],
            "imports": ["org.tea"],
            "version": "1.2.0",
            "spdx": "Apache-2.0",
            "says": "Kettle depends on `org.tea:valve` at run time.",
        },
    ),
    (
        "dotnet",
        {"src/Kettle/Kettle.csproj": CSPROJ_XML, "test/Kettle.Tests/Kettle.Tests.csproj": CSPROJ_XML},
        {
            "install": ["dotnet add package Tea.Kettle"],
            "imports": ["Kettle"],
            "version": "2.3.0",
            "spdx": "MIT",
            "says": "Kettle targets `net8.0` and `netstandard2.0`.",
        },
    ),
    (
        "rust",
        {"Cargo.toml": CARGO_TOML, "src/lib.rs": ""},
        {
            "install": ["cargo add tea-kettle"],
            "imports": ["tea_kettle"],
            "version": "0.4.0",
            "spdx": "MIT OR Apache-2.0",
            "says": "Kettle depends on `valve` at run time.",
        },
    ),
    (
        "go",
        {"go.mod": GO_MOD, "kettle.go": "package kettle\n"},
        {
            "install": ["go get example.com/tea/kettle"],
            "imports": ["example.com/tea/kettle"],
            "version": None,
            "spdx": None,
            "says": "Kettle requires Go 1.22 or later.",
        },
    ),
    (
        "php",
        {"composer.json": COMPOSER_JSON},
        {
            "install": ["composer require tea/kettle"],
            "imports": ["Tea\\Kettle"],
            "version": None,
            "spdx": "MIT",
            "says": "Kettle requires PHP 8.1 or later.",
        },
    ),
    (
        "ruby",
        {
            "tea-kettle.gemspec": GEMSPEC_SOURCE,
            "lib/tea/kettle.rb": "",
            "lib/tea/version.rb": 'module Tea\n  VERSION = "0.9.1"\nend\n',
        },
        {
            "install": ["gem install tea-kettle"],
            "imports": ["tea/kettle"],
            "version": "0.9.1",
            "spdx": "MIT",
            "says": 'Ruby code loads Kettle with `require "tea/kettle"`.',
        },
    ),
    (
        "swift",
        {"Package.swift": SWIFT_MANIFEST},
        {
            "install": [],
            "imports": ["KettleKit"],
            "version": None,
            "spdx": None,
            "says": "Swift code imports Kettle as `KettleKit`.",
        },
    ),
    (
        "cpp",
        {"CMakeLists.txt": CMAKE_LISTS, "kettle.cpp": ""},
        {
            "install": ["cmake -S . -B build", "cmake --build build", "cmake --install build"],
            "imports": [],
            "version": "1.1.0",
            "spdx": None,
            "says": "Kettle is built with C++20.",
        },
    ),
]


@pytest.mark.parametrize(
    "namespace_files",
    [
        {},
        {"src/tea/__init__.py": '__path__ = __import__("pkgutil").extend_path(__path__, __name__)\n'},
        {"src/tea/__init__.py": "__import__('pkg_resources').declare_namespace(__name__)\n"},
    ],
    ids=["native", "pkgutil", "pkg_resources"],
)
def test_a_package_in_a_namespace_is_imported_by_its_whole_name(
    tmp_path: Path, namespace_files: dict[str, str]
) -> None:
    files = {
        "setup.py": "from setuptools import setup\nsetup()\n",
        "pyproject.toml": '[project]\nname = "tea.pots"\nversion = "1.0"\n',
        "src/tea/pots/__init__.py": "from tea.pots.lids import close\n__all__ = ['close']\n",
        "src/tea/pots/lids.py": 'def close():\n    """Close the lid."""\n',
    }

    facts = extract_facts(tmp_path, files | namespace_files).product_facts

    assert facts["distribution"][0]["import_names"] == ["tea.pots"]
    assert [function["name"] for function in facts["api_surface_summary"]["functions"]] == ["tea.pots.close"]


def test_a_module_beside_somebody_elses_namespace_is_known_by_its_name(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\nname = "kettle"\nversion = "1.0"\n',
        "kettle.py": 'def boil():\n    """Boil the water."""\n',
        "plugins/steam/__init__.py": "",
    }

    facts = extract_facts(tmp_path, files).product_facts

    assert facts["distribution"][0]["import_names"] == ["kettle"]


@pytest.mark.parametrize(("target", "files", "expected"), ECOSYSTEM_CASES, ids=lambda value: str(value)[:12])
def test_every_ecosystem_has_its_name_command_and_import(
    tmp_path: Path, target: str, files: Files, expected: dict[str, Any]
) -> None:
    repository_facts = extract_facts(tmp_path, files, target)
    (way,) = repository_facts.product_facts["distribution"]

    assert way["install_commands"] == expected["install"]
    assert way["import_names"] == expected["imports"]
    assert repository_facts.product_facts.get("version") == expected["version"]
    assert repository_facts.product_facts.get("license", {}).get("spdx_id") == expected["spdx"]
    assert expected["says"] in list_claim_texts(repository_facts)


def test_of_several_packages_the_one_named_like_the_distribution_comes_first(
    tmp_path: Path,
) -> None:
    manifest = (
        '[project]\nname = "tea-pots"\n# \u2028\nversion = "1.0"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["src/pots", "src/tea_pots"]\n'
    )
    files: Files = {
        "pyproject.toml": manifest,
        "src/pots/__init__.py": "",
        "src/tea_pots/__init__.py": "",
    }
    repository_facts = extract_facts(tmp_path, files)
    (version,) = (claim for claim in repository_facts.evidence_map["claims"] if "version" in claim["claim_text"])

    assert repository_facts.product_facts["distribution"][0]["import_names"] == ["tea_pots", "pots"]
    assert version["citations"][0]["start_line"] == 4


def test_a_condition_makes_a_dependency_no_general_one(tmp_path: Path) -> None:
    manifest = (
        '[tool.poetry]\nname = "kettle"\nversion = "1"\n[tool.poetry.dependencies]\n'
        'python = ">=3.9"\ntin = { version = "*", platform = "win32" }\n'
    )
    repository_facts = extract_facts(tmp_path, {"pyproject.toml": manifest, "kettle/__init__.py": ""})

    assert not [text for text in list_claim_texts(repository_facts) if "depend" in text]


def test_a_setup_program_that_spreads_a_table_is_read_and_one_that_computes_it_is_not_trusted(
    tmp_path: Path,
) -> None:
    spread = 'more = dict(name="kettle", install_requires=[])\nsetup(**more)\n'
    computed = 'setup(name="kettle", **compute())\n'
    package = {"kettle/__init__.py": ""}

    spread_facts = extract_facts(tmp_path / "a", {"setup.py": spread, **package})
    unknown = extract_facts(tmp_path / "b", {"setup.py": computed, **package})

    assert "Kettle has no required runtime dependencies." in list_claim_texts(spread_facts)
    assert list_claim_texts(unknown) == [
        "Install Kettle with `pip install kettle`.",
        "Python code imports Kettle as `kettle`.",
    ]


def test_the_published_package_of_a_workspace_speaks_for_it(tmp_path: Path) -> None:
    repository_facts = extract_facts(
        tmp_path,
        {
            "package.json": '{"name": "house", "private": true, "workspaces": ["packages/*"]}',
            "packages/kettle/package.json": '{"name": "@tea/kettle", "version": "2.0.0"}',
            "packages/kettle/index.js": "export function boil() {}\n" * 9,
            "packages/lid/package.json": '{"name": "@tea/lid", "version": "1.0.0"}',
            "examples/app/package.json": '{"name": "app"}',
        },
        "javascript",
    )

    assert repository_facts.product_facts["distribution"][0]["identifier"] == "@tea/kettle"
    assert repository_facts.product_facts["version"] == "2.0.0"


def test_a_product_without_headed_code_shows_what_its_documents_have(tmp_path: Path) -> None:
    readme = "# Kettle\n\nSample code:\n\n    from kettle import boil\n    boil()\n"
    repository_facts = extract_facts(
        tmp_path, {"pyproject.toml": PYPROJECT_TEXT, "src/kettle/__init__.py": "", "README.md": readme}
    )

    assert [
        (workflow["workflow_tag"], workflow["snippet_tags"]) for workflow in repository_facts.product_facts["workflows"]
    ] == [("basic-usage", ["quickstart"])]


ODD_PYPROJECT = """\
[project]
name = "kettle"
dynamic = 3
dependencies = 3.5
keywords = true
classifiers = 1
[project.optional-dependencies]
a = 1
b = ["c", 2]
"""
ODD_POETRY = """\
[tool.poetry]
name = "kettle"
version = ""
packages = 3.5
[tool.poetry.extras]
a = 1
b = [1, {c = 2}]
"""
ODD_COMPOSER = '{"name": "a/kettle", "version": "", "require": [1], "autoload": {"psr-4": 3.5}}'


@pytest.mark.parametrize(
    ("path", "platform", "text"),
    [
        ("package.json", "javascript", '{"name": "kettle", "keywords": 3.5, "bin": [1]}'),
        ("composer.json", "php", ODD_COMPOSER),
        ("pyproject.toml", "python", ODD_PYPROJECT),
        ("pyproject.toml", "python", ODD_POETRY),
        ("Cargo.toml", "rust", 'bin = 3.5\n[package]\nname = "kettle"\nversion = ""\n'),
    ],
)
def test_nonsense_in_a_field_of_a_manifest_costs_that_field_and_nothing_else(
    tmp_path: Path, path: str, platform: str, text: str
) -> None:
    [way, *_] = extract_facts(tmp_path, {path: text}, platform).product_facts["distribution"]

    assert way["identifier"].endswith("kettle")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("package.json", '{"name": ""}'),
        pytest.param("package.json", '{"name": "kettle", "a": ' + "[" * 100_000, id="deep JSON"),
        ("composer.json", '{"name": " "}'),
        ("composer.json", "3"),
        ("pyproject.toml", "[project]\nname = 3.5\n[tool.poetry]\nname = 1\n"),
        pytest.param("pyproject.toml", f"a = {'[' * 5000}", id="deep TOML"),
        pytest.param("Cargo.toml", f"a = {'1' * 5000}\n[package]\nname = 'a'\n", id="long number"),
    ],
)
def test_a_manifest_that_says_no_name_or_cannot_be_read_speaks_for_nothing(
    tmp_path: Path, path: str, text: str
) -> None:
    facts = extract_facts(tmp_path, {path: text}, "python").product_facts

    assert "distribution" not in facts


def test_an_element_is_found_however_deep_it_lies() -> None:
    root = xml_elements.parse_xml("<a><b/>" + "<a>" * 5000 + "<b/>" + "</a>" * 5000 + "<b/></a>")

    assert root is not None
    assert len(list(root.find_all("a"))) == 5000
    assert len(list(root.find_all("b"))) == 3


DEEP_SUM = "+".join(["1"] * 6000)
"""A sum that is nested too deeply for most Python versions to parse."""


def test_an_older_manifest_without_a_name_speaks_for_nothing(tmp_path: Path) -> None:
    assert setuptools.read_setuptools(write_tree(tmp_path, {"setup.cfg": "[metadata]\nname =\n"})) is None


def test_commands_of_a_setup_program_that_are_none_are_left_out(tmp_path: Path) -> None:
    entry_points = "{'console_scripts': [{'a': '='}, '= x', 'boil = kettle:boil'], (1, [2]): 3}"
    odd = write_tree(tmp_path / "a", {"setup.py": f"setup(name='kettle', entry_points={entry_points})\n"})
    cfg_source = write_tree(tmp_path / "b", {"setup.cfg": CFG_COMMANDS})
    bare = "setup(name='kettle', entry_points={'console_scripts': 3})\n"
    none = write_tree(tmp_path / "c", {"setup.py": bare})

    manifests = [setuptools.read_setuptools(source) for source in (odd, cfg_source, none)]

    command_names = [[statement.value for statement in source.commands] if source else None for source in manifests]
    assert command_names == [["boil"], ["boil"], []]


CFG_COMMANDS = """\
[metadata]
name = kettle
[options.entry_points]
console_scripts =
    =
    boil = kettle:boil
"""


def test_programs_that_are_nested_deeply_do_not_end_their_reader(tmp_path: Path) -> None:
    files: Files = {
        "pyproject.toml": PYPROJECT_TEXT,
        "kettle/__init__.py": f'def boil(water={"+".join(["1"] * 450)}):\n    """Boil it."""\n',
        "examples/boil.py": f"x = {DEEP_SUM}\n",
        "setup.py": f"x = {DEEP_SUM}\n",
    }

    repository_facts = extract_facts(tmp_path, files)

    assert repository_facts.product_facts["api_surface_summary"]


def test_a_private_package_is_not_installed_from_anywhere(tmp_path: Path) -> None:
    repository_facts = extract_facts(tmp_path, {"package.json": '{"name": "kettle", "private": true}'}, "javascript")

    assert repository_facts.product_facts["distribution"][0]["install_commands"] == []
    assert list_claim_texts(repository_facts, "install") == []


def test_an_xml_manifest_with_entities_is_not_read(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE p [<!ENTITY a "x">]><project><groupId>&a;</groupId>'
    bomb += "<artifactId>kettle</artifactId></project>"

    assert "distribution" not in extract_facts(tmp_path, {"pom.xml": bomb}, "java").product_facts


API_SOURCE = '''\
"""Pots."""
from kettle._pots import *
from kettle._pots import pour as pour
from kettle.errors import TooHot

__all__ = ["Pot", "TooHot", "boil", "pour", "tip", "old", "watch"]
'''
POTS_SOURCE = '''\
__all__ = ["Pot", "boil", "tip", "old", "watch"]

class Pot:
    """A vessel for :class:`~kettle.Water`. More words."""
    def __init__(self, size=1, *, lid=True): ...

def boil(water, to: float = 100.0, **more):
    """Heat water and return its temperature.

    :param water: how much
    """

def pour(cup):
    """Pour a cup."""

def tip():
    """Is the pot tipped?"""

def old():
    """Do nothing.

    .. deprecated:: 1.0
    """

def watch():
    """The pot is watched."""

def _hidden():
    """Hide."""
'''


def test_substitutions_that_name_a_class_and_numbers_of_standards_are_kept() -> None:
    assert documents.strip_inline_markup("Return a |Document| object.") == "Return a `Document` object."
    assert documents.strip_inline_markup("As of :rfc:`7986` and :pep:`8`.") == "As of RFC 7986 and PEP 8."
    assert documents.strip_inline_markup("By :rfc:`7265#section-5`, |version| |PyPI|_") == "By RFC 7265,"
    assert documents.strip_inline_markup("|Build| |Licence|") == ""


def test_the_public_api_is_followed_to_its_definitions(tmp_path: Path) -> None:
    repository_facts = extract_facts(
        tmp_path,
        {
            "pyproject.toml": PYPROJECT_TEXT,
            "src/kettle/__init__.py": API_SOURCE,
            "src/kettle/_pots.py": POTS_SOURCE.replace("Heat", "Convert"),
            "src/kettle/errors.py": 'class TooHot(Exception):\n    """Raised when it boils."""\n',
        },
    )
    surface = repository_facts.product_facts["api_surface_summary"]

    assert [(class_entry["name"], class_entry["signature"]) for class_entry in surface["classes"]] == [
        ("kettle.Pot", "Pot(size=1, *, lid=True)"),
        ("kettle.TooHot", "TooHot"),
    ]
    assert surface["functions"][0]["signature"] == "boil(water, to=100.0, **more)"
    assert surface["functions"][0]["path"] == "src/kettle/_pots.py"
    assert [text for text in list_claim_texts(repository_facts, "api") if "kettle." in text] == [
        "`kettle.Pot` is a vessel for `kettle.Water`.",
        "`kettle.TooHot` is raised when it boils.",
        "`kettle.boil()` converts water and returns its temperature.",
        "`kettle.pour()` is documented as: Pour a cup.",
        "`kettle.tip()` is a public function of Kettle.",
        "`kettle.old()` is documented as: Do nothing.",
        "`kettle.watch()` is documented as: The pot is watched.",
    ]


def test_a_name_cites_its_parameters_and_all_of_its_first_sentence(tmp_path: Path) -> None:
    code = (
        'class Pot:\n    """A vessel of\n    40 cups.\n\n    More.\n    """\n\n'
        "    def __init__(\n        self,\n        size=10_000,\n    ):\n        pass\n"
    )
    repository_facts = extract_facts(tmp_path, {"pyproject.toml": PYPROJECT_TEXT, "src/kettle/__init__.py": code})
    (pot,) = repository_facts.product_facts["api_surface_summary"]["classes"]
    (claim,) = (entry for entry in repository_facts.evidence_map["claims"] if entry["claim_id"] == pot["claim_id"])

    assert pot["signature"] == "Pot(size=10_000)"
    assert claim["claim_text"] == "`kettle.Pot` is a vessel of 40 cups."
    assert [(entry["start_line"], entry["end_line"]) for entry in claim["citations"]] == [
        (1, 1),
        (8, 11),
        (2, 3),
    ]


def test_the_api_of_a_script_package_is_what_its_types_export(tmp_path: Path) -> None:
    repository_facts = extract_facts(
        tmp_path,
        {
            "package.json": PACKAGE_JSON,
            "dist/index.d.ts": "export * from './pots';\nexport { inner as pour } from './pour';\n"
            "export * as hidden from './hidden';\n",
            "dist/pots.d.ts": "/** Returns the size. */\n"
            "export declare function size(pot: Pot): number;\n"
            "export declare class Pot {}\n",
            "dist/pour.d.ts": "/**\n * Write a cup to {@link Pot}.\n * @deprecated\n */\n"
            "export declare function inner(): void;\nexport declare function other(): void;\n",
            "dist/hidden.d.ts": "export declare function secret(): void;\n",
        },
        "typescript",
    )

    surface = repository_facts.product_facts["api_surface_summary"]
    assert [function["name"] for function in surface["functions"]] == ["size", "pour"]
    assert [text for text in list_claim_texts(repository_facts, "api") if "`@tea" not in text] == [
        "`size()` returns the size.",
        "`Pot` is a public class of Kettle.",
        "`pour()` is documented as: Write a cup to `Pot`.",
    ]


def test_formats_are_those_that_the_code_names(tmp_path: Path) -> None:
    repository_facts = extract_facts(
        tmp_path,
        {
            "pyproject.toml": PYPROJECT_TEXT,
            "src/kettle/__init__.py": "from kettle.io import read_csv, to_json\n",
            "src/kettle/io.py": "SUPPORTED_EXTENSIONS = ['.xlsx', '.tea']\n"
            "class Formatter:\n    HTML = 'html'\n"
            "def read_csv(path): ...\ndef to_json(): ...\n",
        },
    )

    assert list_claim_texts(repository_facts, "format") == [
        "Kettle reads the CSV format with `kettle.read_csv()`.",
        "Kettle writes the JSON format with `kettle.to_json()`.",
        "Kettle lists XLSX in `SUPPORTED_EXTENSIONS` as a format it supports.",
    ]
    assert [format_entry["direction"] for format_entry in repository_facts.product_facts["supported_formats"]] == [
        "import",
        "export",
        "unknown",
    ]


def test_another_name_for_a_public_function_is_public_too(tmp_path: Path) -> None:
    repository_facts = extract_facts(
        tmp_path,
        {
            "pyproject.toml": PYPROJECT_TEXT,
            "src/kettle/__init__.py": "from kettle._pots import boil\nheat = boil\n"
            'def pour():\n    """pour a cup. stops by itself, e.g. at noon."""\n'
            "tip = pour\nsize = limit = 3\n",
            "src/kettle/_pots.py": 'def boil_slowly():\n    """Transliterate steam."""\nboil = boil_slowly\n',
        },
    )
    functions = repository_facts.product_facts["api_surface_summary"]["functions"]

    assert [(function["name"], function["summary"]) for function in functions] == [
        ("kettle.boil", "Transliterate steam."),
        ("kettle.pour", "pour a cup"),
        ("kettle.tip", "pour a cup"),
    ]


@pytest.mark.parametrize(
    "title",
    [
        "Kettle is a pot that can be used in code",
        "Kettle --- pots and lids",
        "\u4e3a\u4ec0\u4e48 (yu)",
    ],
)
def test_a_heading_that_only_tells_what_the_product_is_or_is_in_another_script_is_no_task(
    tmp_path: Path, title: str
) -> None:
    repository_facts = extract_facts(
        tmp_path,
        {
            "pyproject.toml": PYPROJECT_TEXT,
            "src/kettle/__init__.py": "",
            "README.md": f"# Top\n\n## {title}\n\n```python\nimport kettle\n```\n",
        },
    )

    assert [workflow["title"] for workflow in repository_facts.product_facts["workflows"]] == ["Basic usage"]


def test_examples_and_headings_with_code_are_workflows(tmp_path: Path) -> None:
    repository_facts = extract_facts(
        tmp_path,
        {
            "pyproject.toml": PYPROJECT_TEXT,
            "src/kettle/__init__.py": "",
            "examples/01_brew_tea.py": '"""Print a label and exit."""\nimport kettle\n',
            "examples/server/app.py": "import kettle\n",
            "examples/server/views.py": "import kettle\n",
            "README.md": "# Kettle\n\n## Pouring\n\n```python\nimport kettle\n```\n\n"
            "## Why?\n\n```python\nimport kettle\n```\n",
        },
    )

    assert [
        (workflow["workflow_tag"], workflow["title"]) for workflow in repository_facts.product_facts["workflows"]
    ] == [
        ("brew-tea", "Brew tea"),
        ("server", "Server"),
        ("pouring", "Pouring"),
    ]
    assert list_claim_texts(repository_facts, "workflow") == [
        "The example `examples/01_brew_tea.py` shows how to print a label and exit.",
        "The repository of Kettle includes the example `examples/server/app.py`.",
        'The readme of Kettle has a code example under the heading "Pouring".',
    ]


@pytest.mark.parametrize(
    ("summary", "sentence"),
    [
        ("A modern water boiler", "Kettle is a water boiler."),
        ("Modern water boiler library", "Kettle is a water boiler library."),
        ("Composable tea toolkit", "Kettle is a composable tea toolkit."),
        ("HTTP client for tea", "Kettle is an HTTP client for tea."),
        ("Convert, parse and print labels", "Kettle can convert, parse and print labels."),
        ("Python tea utilities", 'Kettle describes itself as "Python tea utilities".'),
        ("Fast and simple tea-framework for pots", "Kettle is a tea-framework for pots."),
        ("A fast, tiny and reliable tea reader", "Kettle is a tea reader."),
        ("A tiny (9 ml), secure URL-friendly tea reader", "Kettle is a URL-friendly tea reader."),
        ("Safely pass tea to strangers and back.", "Kettle can pass tea to strangers and back."),
        ("Easily pour tea into cups", ""),
        ("Fast Fourier transformer for tea", ""),
        ("Secure tea client", ""),
        ("The next generation pot", ""),
        ("Tea, done right!", ""),
        ("Fast tea", ""),
    ],
)
def test_the_summary_of_a_package_becomes_a_sentence_or_nothing(tmp_path: Path, summary: str, sentence: str) -> None:
    manifest = f'[project]\nname = "kettle"\ndescription = "{summary}"\n'
    repository_facts = extract_facts(tmp_path, {"pyproject.toml": manifest, "kettle/__init__.py": ""})

    assert list_claim_texts(repository_facts, "feature") == ([sentence] if sentence else [])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("This crate provides a fast conversion of tea to cups.", "Kettle provides a conversion of tea to cups."),
        ("Kettle offers a bus to which cups subscribe.", "Kettle offers a bus to which cups subscribe."),
        ("This is a kettle that boils water.", ""),
    ],
)
def test_the_first_paragraph_of_the_readme_says_what_the_product_is(tmp_path: Path, text: str, sentence: str) -> None:
    repository_facts = extract_facts(tmp_path, {"README.md": f"# Kettle\n\n{text}\n"})

    assert list_claim_texts(repository_facts, "feature") == ([sentence] if sentence else [])


def test_a_repository_that_says_nothing_still_has_facts(tmp_path: Path) -> None:
    repository_facts = extract_facts(tmp_path, {"notes.txt": "tea\n"})

    assert repository_facts.product_facts["positioning"]["tagline"] == "Kettle for Python"
    assert repository_facts.evidence_map["claims"] == []


def test_evidence_stands_on_the_very_line(tmp_path: Path) -> None:
    setup = "[metadata]\n\nname = py-kettle\n\n[options]\n\npython_requires = >=3.9\n"
    extras = "\n[options.extras_require]\n\nsteam =\n\n    turbine\n"
    repository_facts = extract_facts(tmp_path, {"setup.cfg": setup + extras, "kettle/__init__.py": "", "LICENSE": "x"})
    lines = {
        claim["claim_text"]: [citation["start_line"] for citation in claim["citations"]]
        for claim in repository_facts.evidence_map["claims"]
        if claim["citations"][0]["path"] == "setup.cfg"
    }

    assert lines["Kettle requires Python 3.9 or later."] == [7]
    assert lines["Install Kettle with `pip install py-kettle`."] == [3]
    assert [line_numbers for text, line_numbers in lines.items() if "steam" in text] == [[11, 13]]


def test_a_node_package_whose_files_end_their_parser_is_known_without_its_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"index.d.ts": "/** Boils water. */\nexport function boil(cups: number): void;\n"}
    source = write_tree(tmp_path, files)

    manifest = PackageManifest(
        ecosystem="npm", path="package.json", name=LocatedValue("kettle", ""), entry_files=("index.d.ts",)
    )

    surface = javascript.read_surface(source, manifest)
    monkeypatch.setattr(declarations, "parse_declarations", lambda *_: os._exit(1))
    torn = javascript.read_surface(source, manifest)

    assert [(symbol.name, symbol.doc) for symbol in surface.symbols] == [("boil", "Boils water.")]
    assert torn == ApiSurface((), (("kettle", "index.d.ts"),))
