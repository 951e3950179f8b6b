"""Tests of the API overview: every public name is on it, and the important ones have the room they need."""

from pathlib import Path

from tests.support.launch_sources import draft_pages, strip_markers

PYPROJECT_TEXT = """\
[project]
name = "kettle"
version = "1.0"
description = "A library to boil water"
"""


def write_kettles(class_count: int, member_count: int) -> str:
    """Return a module with classes, each with methods that have a purpose."""
    lines = ['"""Kettles."""', ""]
    for number in range(class_count):
        lines += [f"class Kettle{number}:", f'    """Boil water in the kettle {number}."""', ""]
        for member in range(member_count):
            lines += [f"    def pour{member}(self):", f'        """Pour the cup {member}."""', ""]
    return "\n".join(lines)


def test_a_page_that_would_be_too_long_keeps_every_name_within_the_budget(tmp_path: Path) -> None:
    files = {"pyproject.toml": PYPROJECT_TEXT, "kettle/__init__.py": write_kettles(60, 12)}

    page = draft_pages(tmp_path, files, max_lines=300)["reference/_index"]

    assert page.body.count("\n") + len(page.claim_ids) < 300
    assert all(f"`kettle.Kettle{number}" in page.body for number in range(60))


def test_the_class_that_the_documents_use_keeps_its_table_where_there_is_little_room(tmp_path: Path) -> None:
    readme = "# Kettle\n\n## Usage\n\n```python\nimport kettle\n\nkettle.Kettle29().pour1()\n```\n"
    files = {
        "pyproject.toml": PYPROJECT_TEXT,
        "README.md": readme,
        "kettle/__init__.py": write_kettles(30, 12),
    }

    text = strip_markers(draft_pages(tmp_path, files, max_lines=300)["reference/_index"].body)

    last = text.partition("### Kettle29\n")[2].partition("\n### ")[0]
    assert last.count("| `pour") == 12
    assert text.count("| `pour") < 30 * 12


def test_a_class_without_a_purpose_is_a_sentence_and_keeps_its_short_heading(tmp_path: Path) -> None:
    code = "class Kettle:\n    def pour(self):\n        pass\n\n    def fill(self):\n        pass\n"
    files = {"pyproject.toml": PYPROJECT_TEXT, "kettle/__init__.py": code}

    text = strip_markers(draft_pages(tmp_path, files)["reference/_index"].body)

    assert "### Kettle\n\n`kettle.Kettle` is a public class.\n\nMembers: `pour()`, `fill()`." in text


def test_the_only_instance_of_a_class_has_the_purpose_of_the_class(tmp_path: Path) -> None:
    code = '__all__ = ["never"]\n\n\nclass _Never:\n    """Never pour."""\n\n\nnever = _Never()\n'
    files = {"pyproject.toml": PYPROJECT_TEXT, "kettle/__init__.py": code}

    text = strip_markers(draft_pages(tmp_path, files)["reference/_index"].body)

    assert "| `kettle.never` | Never pour. |" in text
