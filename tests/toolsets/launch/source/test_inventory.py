"""Tests of the inventory of a source repository: its files and their roles."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.launch.runs import artifacts
from cleats.toolsets.launch.source.checkout.tree import IngestionScope
from cleats.toolsets.launch.source.evidence import inventory, licences
from cleats.toolsets.launch.workers.ingest import run_inventory
from tests.support.git_repositories import GitCheckout
from tests.support.launch_runs import create_job
from tests.support.launch_sources import PYPROJECT_TEXT, SOURCE_SHA, SOURCE_URL, write_tree

MIT_LICENSE = (
    "MIT License\n\n"
    "Permission is hereby granted, free of charge, to any person obtaining a copy of it.\n"
    "The above copyright notice and this permission notice shall be included.\n"
)
BSD_LICENSE = (
    "Redistributions of source code must retain the above copyright notice\n"
    "Redistributions in binary form must reproduce the above copyright notice\n"
)

SOURCE_FILES: dict[str, str | bytes] = {
    "pyproject.toml": PYPROJECT_TEXT,
    "LICENSE": MIT_LICENSE,
    "README.md": "# Kettle\n\nSee examples/brew.py, docs/guide and examples/missing.py.\n"
    "https://example.com/docs/elsewhere is another site.\n",
    "src/kettle/__init__.py": "BOIL = 100\n",
    "src/kettle/logo.png": b"\x89PNG\x00",
    "tests/test_kettle.py": "def test_it(): pass\n",
    "tests/examples/data.py": "x = 1\n",
    "examples/brew.py": "import kettle\n",
    "docs/guide.md": "# Guide\n",
    "docs/examples/more.py": "import kettle\n",
    "CHANGELOG.md": "# Changes\n",
    ".github/workflows/test.yml": "on: push\n",
}


def test_an_inventory_tells_what_every_file_is_for(tmp_path: Path) -> None:
    found_inventory = inventory.take_inventory(write_tree(tmp_path, SOURCE_FILES), SOURCE_URL, SOURCE_SHA)
    artifacts.check_document("repo_inventory.json", found_inventory)

    assert found_inventory["paths"] == sorted(SOURCE_FILES)
    assert found_inventory["source_roots"] == ["src"]
    assert found_inventory["test_roots"] == ["tests"]
    assert found_inventory["example_paths"] == ["docs/examples/more.py", "examples/brew.py"]
    assert found_inventory["binary_assets"] == ["src/kettle/logo.png"]
    assert found_inventory["ci_paths"] == [".github/workflows/test.yml"]
    assert found_inventory["fingerprint"]["license_path"] == "LICENSE"
    assert found_inventory["repo_profile"]["repo_archetype"] == "python_src_pyproject"
    assert found_inventory["repo_profile"]["public_api_entrypoints"] == ["src/kettle/__init__.py"]
    assert [entry["doc_type"] for entry in found_inventory["doc_entrypoint_details"]] == [
        "readme",
        "changelog",
        "guide",
    ]


def test_a_path_that_a_document_names_and_nobody_has_is_a_phantom(tmp_path: Path) -> None:
    found_inventory = inventory.take_inventory(write_tree(tmp_path, SOURCE_FILES), SOURCE_URL, SOURCE_SHA)

    assert found_inventory["phantom_paths"] == [{"path": "examples/missing.py", "named_in": "README.md", "line": 3}]


ALL_PATHS = ["README.md", "docs/a.md", "docs/old/b.md", "src/a.py", "src/a_pb2.py"]


@pytest.mark.parametrize(
    ("config", "gone"),
    [
        ({}, []),
        ({"scan_directories": ["src/"]}, ["docs/a.md", "docs/old/b.md"]),
        ({"exclude_patterns": ["*_pb2.py"]}, ["src/a_pb2.py"]),
        ({"exclude_patterns": ["docs/old/**"]}, ["docs/old/b.md"]),
        ({"exclude_patterns": ["old", "/src"]}, ["docs/old/b.md", "src/a.py", "src/a_pb2.py"]),
        ({"exclude_patterns": ["oc*", "src/*.md"]}, []),
    ],
)
def test_a_run_reads_what_its_ingestion_leaves(config: dict[str, Any], gone: list[str]) -> None:
    scope = IngestionScope.from_config({"ingestion": config})

    assert [path for path in ALL_PATHS if not scope.includes(path)] == gone


def test_a_hint_of_the_run_says_what_a_folder_is_for(tmp_path: Path) -> None:
    files = {**SOURCE_FILES, "showcase/tea.py": "import kettle\n", "manual/start.md": "# Start\n"}
    hints = {
        "preferred_source_roots": ["src/kettle", "nowhere"],
        "preferred_docs_roots": ["manual"],
        "preferred_examples_roots": ["showcase/"],
        "preferred_test_commands": ["make test"],
    }

    found_inventory = inventory.take_inventory(
        write_tree(tmp_path, files), SOURCE_URL, SOURCE_SHA, IngestionScope.from_config({"repo_hints": hints})
    )

    assert found_inventory["source_roots"] == ["src/kettle"]
    assert found_inventory["doc_roots"] == ["manual", "docs"]
    assert "manual/start.md" in found_inventory["doc_entrypoints"]
    assert "showcase/tea.py" in found_inventory["example_paths"]
    assert found_inventory["repo_profile"]["recommended_test_commands"] == ["make test"]


def test_an_inventory_without_binaries_and_phantoms_when_the_run_wants_none(tmp_path: Path) -> None:
    config = {"ingestion": {"record_binary_files": False, "detect_phantom_paths": False}}

    found_inventory = inventory.take_inventory(
        write_tree(tmp_path, SOURCE_FILES), SOURCE_URL, SOURCE_SHA, IngestionScope.from_config(config)
    )

    assert (found_inventory["binary_assets"], found_inventory["phantom_paths"]) == ([], [])


@pytest.mark.parametrize("mode", ["respect", "strict"])
def test_a_committed_file_that_gitignore_names_is_left_out_only_by_strict(tmp_path: Path, mode: str) -> None:
    ingestion = {"gitignore_mode": mode, "exclude_patterns": ["docs"]}
    refs = {"repo": {"repo_url": SOURCE_URL, "resolved_sha": SOURCE_SHA}}
    work = create_job(tmp_path, config={"ingestion": ingestion}, artifacts={"resolved_refs.json": refs})
    source = GitCheckout.create(work.repo)
    source.write_file("made.py", "x = 1\n")
    source.write_file("README.md", "See docs/a.md.\n")
    source.write_file("docs/a.md", "Text.\n")
    source.commit()
    source.write_file(".gitignore", "made.py\n")
    source.commit()

    asyncio.run(run_inventory(work))

    found_inventory = work.read_json("repo_inventory.json")
    kept_paths = [".gitignore", "README.md"]
    assert found_inventory["paths"] == (kept_paths if mode == "strict" else [*kept_paths, "made.py"])
    assert found_inventory["phantom_paths"] == []


def test_tests_that_never_name_pytest_are_run_without_it(tmp_path: Path) -> None:
    with_it = inventory.take_inventory(write_tree(tmp_path / "a", SOURCE_FILES), SOURCE_URL, SOURCE_SHA)
    bare = {"setup.py": "setup(name='k')\n", "tests/test_k.py": "import unittest\n"}
    without = inventory.take_inventory(write_tree(tmp_path / "b", bare), SOURCE_URL, SOURCE_SHA)

    assert with_it["repo_profile"]["recommended_test_commands"] == ["python -m pytest"]
    assert without["repo_profile"]["recommended_test_commands"] == ["python -m unittest discover"]


def test_the_fingerprint_follows_paths_and_contents(tmp_path: Path) -> None:
    first = write_tree(tmp_path / "a", SOURCE_FILES).fingerprint
    same = write_tree(tmp_path / "b", SOURCE_FILES).fingerprint
    other = write_tree(tmp_path / "c", {**SOURCE_FILES, "LICENSE": BSD_LICENSE}).fingerprint

    assert first == same != other


@pytest.mark.parametrize(
    ("files", "family"),
    [
        ({"pyproject.toml": "", "package.json": "{}", "setup.cfg": "", "tox.ini": ""}, "python"),
        ({"package.json": "{}", "tsconfig.json": "{}"}, "node"),
        ({"src/App/App.csproj": "<Project/>"}, "dotnet"),
        ({"build.gradle": ""}, "java"),
        ({"go.mod": "module x"}, "go"),
        ({"Gemfile": ""}, "unknown"),
        ({"pyproject.toml": "", "Cargo.toml": ""}, "multi"),
        ({"Cargo.toml": "", "tests/fixture/package.json": "{}"}, "rust"),
        ({"notes.txt": ""}, "unknown"),
    ],
)
def test_manifests_decide_what_a_repository_is_built_with(
    tmp_path: Path, files: dict[str, str | bytes], family: str
) -> None:
    assert inventory.detect_platform(write_tree(tmp_path, files)).family == family


@pytest.mark.parametrize(
    ("text", "spdx"),
    [
        (MIT_LICENSE, "MIT"),
        (BSD_LICENSE, "BSD-2-Clause"),
        (BSD_LICENSE + "Neither the name of the owner", "BSD-3-Clause"),
        (MIT_LICENSE + BSD_LICENSE, ""),
        ("GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007", "GPL-3.0-only"),
        ("All rights reserved.", ""),
    ],
)
def test_a_licence_is_known_by_its_text(text: str, spdx: str) -> None:
    assert licences.identify_licence_text(text) == spdx


@pytest.mark.parametrize(
    ("words", "spdx"),
    [
        ("MIT", "MIT"),
        ("mit license", "MIT"),
        ("License :: OSI Approved :: MIT License", "MIT"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("Apache 2.0", "Apache-2.0"),
        ("BSD 3-Clause", "BSD-3-Clause"),
        ("BSD", ""),
        ("GPLv3+", "GPL-3.0-or-later"),
        ("MIT OR Apache-2.0", "MIT OR Apache-2.0"),
        ("MIT/Apache-2.0", "MIT OR Apache-2.0"),
        ("MPL-2.0", "MPL-2.0"),
        ("see the file", ""),
        ("Proprietary", ""),
    ],
)
def test_the_words_of_a_manifest_are_put_into_spdx(words: str, spdx: str) -> None:
    assert licences.parse_licence_name(words) == spdx
