"""Tests that the table of capabilities tells the truth about this machine and this program."""

from pathlib import Path

import pytest

from cleats.runtime.capabilities import BUILT_IN_SUPPORT, CAPABILITIES
from cleats.toolsets.code.analysis.embedding import table
from cleats.toolsets.code.analysis.languages.language_names import detect_language_by_path

SUFFIXES_BY_DOCUMENT = {"markdown": "md", "rst": "rst", "asciidoc": "adoc", "tex": "tex", "pdf": "pdf", "docx": "docx"}
[ESLINT] = [capability for capability in CAPABILITIES if capability.name == "eslint"]


def write_command(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def test_eslint_needs_node_an_installed_eslint_and_leave_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    without_node = ESLINT.is_present(checkout)
    write_command(tmp_path / "bin" / "node")
    with_node = ESLINT.is_present(checkout)
    write_command(checkout / "node_modules" / ".bin" / "eslint")

    assert (without_node, with_node) == (False, False)
    assert ESLINT.is_present(checkout)
    assert not ESLINT.is_present(None)


def test_the_documents_that_are_named_as_readable_are_read() -> None:
    support = {name: bool(detect_language_by_path(f"a.{suffix}")) for name, suffix in SUFFIXES_BY_DOCUMENT.items()}

    assert BUILT_IN_SUPPORT["docs"] == support


def test_vectors_come_from_the_word_table_that_is_shipped() -> None:
    assert BUILT_IN_SUPPORT["vector"]["wordTable"] is (Path(table.__file__).parent / "data" / "vectors.npy").is_file()
