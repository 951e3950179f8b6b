"""Tests of what is read from documents, docstrings and command lines, in the words of the repository."""

from pathlib import Path
from typing import Any

from cleats.toolsets.launch.source.api.docstrings import find_notes
from tests.support.launch_sources import ExtractedFacts, extract_facts

PYPROJECT_TEXT = """\
[project]
name = "py-kettle"
version = "1.0"
[project.scripts]
kettle = "kettle.cli:main"
"""
README_TEXT = """\
# Kettle

Kettle boils water. We love tea.

## Features

- **Exact heat**: temperatures are `decimal.Decimal`, never floats
- Korean
- A label for each cup

## Pouring tea

Pour a cup with `pour`. It returns the cup.

```python
import kettle

kettle.pour("oolong")
```

> [!WARNING]
> The lid is hot.

| Cup | Size |
| --- | --- |
| small | 200 ml |

## Contributing

Send a patch.

## Troubleshooting

The kettle is cold: check the plug.
"""
CLI_TEXT = """\
import argparse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cups", help="Number of cups to pour (default: %(default)s)")
    commands = parser.add_subparsers()
    clean = commands.add_parser("clean", help="Remove lime")
    clean.add_argument("--hard", help="use %(prog)s acid")
    clean.add_argument("--soft", help="use vinegar")
"""


def extract_kettle(tmp_path: Path, code: str = "", readme: str = README_TEXT) -> ExtractedFacts:
    files = {"pyproject.toml": PYPROJECT_TEXT, "README.md": readme, "kettle/cli.py": CLI_TEXT}
    return extract_facts(tmp_path, {**files, "kettle/__init__.py": code}, name="")


def list_sections(facts: ExtractedFacts) -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Return the topic of each section by its title, with the kind and the text of its parts."""
    texts = {claim["claim_id"]: claim["claim_text"] for claim in facts.evidence_map["claims"]}
    return {
        section["title"]: (
            section["topic"],
            [(part["kind"], texts.get(part.get("claim_id", ""), "")) for part in section["parts"]],
        )
        for section in facts.product_facts["document_sections"]
    }


def test_a_section_keeps_its_text_its_code_its_warnings_and_its_tables_in_order(tmp_path: Path) -> None:
    sections = list_sections(extract_kettle(tmp_path))

    assert sections["Kettle"] == ("introduction", [("text", "Kettle boils water.")])
    assert sections["Pouring tea"] == (
        "task",
        [
            ("text", "Pour a cup with `pour`. It returns the cup."),
            ("code", ""),
            ("note", "The lid is hot."),
            ("header", "Cup | Size"),
            ("row", "small | 200 ml"),
        ],
    )
    assert sections["Troubleshooting"] == ("troubleshooting", [("text", "The kettle is cold: check the plug.")])
    assert "Contributing" not in sections


def test_an_item_of_a_list_is_quoted_as_a_whole(tmp_path: Path) -> None:
    topic, parts = list_sections(extract_kettle(tmp_path))["Features"]

    assert topic == "features"
    assert parts == [
        ("item", "Exact heat: temperatures are `decimal.Decimal`, never floats"),
        ("item", "Korean"),
        ("item", "A label for each cup"),
    ]


def test_the_command_line_is_described_by_the_help_that_the_source_declares(tmp_path: Path) -> None:
    (command,) = extract_kettle(tmp_path).product_facts["commands"]

    assert command["name"] == "kettle"
    assert [(argument["name"], argument["help"]) for argument in command["arguments"]] == [
        ("--cups", "Number of cups to pour."),
        ("clean", "Remove lime."),
        ("clean --soft", "Use vinegar."),
    ]


def test_a_class_has_its_members_with_their_purposes_and_warnings(tmp_path: Path) -> None:
    code = (
        'class Kettle:\n    """A kettle."""\n\n    @property\n    def heat(self):\n        """The heat."""\n\n'
        '    def pour(self, cup):\n        """Pour a cup.\n\n        Warning: the cup is overwritten.\n        """\n\n'
        "    def _hide(self):\n        pass\n\n\nSIZES = (1, 2)\n" + '"""The sizes of cups."""\n'
    )
    facts = extract_kettle(tmp_path, code)
    surface = facts.product_facts["api_surface_summary"]
    (kettle,), texts = surface["classes"], {c["claim_id"]: c["claim_text"] for c in facts.evidence_map["claims"]}

    assert [(item["name"], item["kind"], item["signature"], item["summary"]) for item in kettle["members"]] == [
        ("kettle.Kettle.heat", "property", "", "The heat."),
        ("kettle.Kettle.pour", "method", "pour(cup)", "Pour a cup."),
    ]
    (note_id,) = kettle["members"][1]["note_claim_ids"]
    assert texts[note_id] == "The documentation of `kettle.Kettle.pour()` notes: The cup is overwritten."
    assert [(item["name"], item["summary"]) for item in surface["constants"]] == [
        ("kettle.SIZES", "The sizes of cups.")
    ]


def test_warnings_are_found_in_the_styles_of_docstrings_with_their_lines() -> None:
    docs: dict[str, list[tuple[str, int, int]]] = {
        "Pour.\n\n.. warning::\n   The lid is hot.\n\nMore.": [("The lid is hot.", 12, 13)],
        "Pour.\n\nNote:\n    The lid is hot.\n": [("The lid is hot.", 12, 13)],
        "Pour.\n\nWarnings\n--------\nThe lid is hot.\n": [("The lid is hot.", 12, 14)],
        "Resize in place (!!!). USE WITH CARE.": [("Resize in place. USE WITH CARE.", 10, 10)],
        "Warning: it returns a :class`kettle.Cup`.": [("It returns a `kettle.Cup`.", 10, 10)],
        "Pour a cup of tea.\n\nIt is warm.": [],
    }
    found: dict[str, Any] = {doc: [(note.text, note.line, note.end) for note in find_notes(doc, 10)] for doc in docs}

    assert found == docs


def test_the_product_is_called_what_its_readme_calls_it(tmp_path: Path) -> None:
    readme = README_TEXT.replace("# Kettle", "# Py-Kettle")

    assert extract_kettle(tmp_path, readme=readme).product_facts["product_name"] == "Py-Kettle"


def list_items(tmp_path: Path, text: str) -> list[str]:
    sections = list_sections(extract_kettle(tmp_path, readme=f"# Kettle\n\nKettle boils water.\n\n{text}\n"))
    return [text for _, parts in sections.values() for kind, text in parts if kind == "item"]


def test_lists_that_share_an_item_both_keep_it(tmp_path: Path) -> None:
    text = "## Cups\n\nThese cups are sold:\n\n- small\n- big\n\n## Pots\n\nThese pots are sold:\n\n- small\n- huge"

    assert list_items(tmp_path, text) == ["small", "big", "small", "huge"]


def test_a_list_is_left_out_if_what_is_lost_would_make_it_false(tmp_path: Path) -> None:
    lost = "- The fastest way to boil water."

    assert list_items(tmp_path, f"## Ways\n\nThere are two ways:\n\n- Boil the water.\n{lost}") == []
    assert list_items(tmp_path, f"## Ways\n\nKettle has ways:\n\n- Boil the water.\n{lost}") == ["Boil the water."]
    assert list_items(tmp_path, f"## Ways\n\nIt boils.\n\n{lost}\n{lost}\n- Boil the water.") == []
    assert list_items(tmp_path, "## Ways\n\nKettle has powerful features:\n\n- cups\n- lids") == []


def test_a_section_below_a_heading_without_text_moves_up(tmp_path: Path) -> None:
    readme = "# Kettle\n\nIt boils.\n\n## Pots\n\nA pot is big.\n\n## Examples\n\n### Pour a cup\n\nTilt the kettle.\n"
    sections = extract_kettle(tmp_path, readme=readme).product_facts["document_sections"]

    assert [(section["title"], section["level"]) for section in sections if section["level"]] == [
        ("Pots", 1),
        ("Pour a cup", 1),
    ]


def test_code_that_an_import_does_not_run_is_no_public_name(tmp_path: Path) -> None:
    code = "def pour():\n    pass\n\n\nif __name__ == '__main__':\n\n    def handle_cup():\n        pass\n"
    functions = extract_kettle(tmp_path, code).product_facts["api_surface_summary"]["functions"]

    names = [symbol["name"] for symbol in functions]
    assert "kettle.pour" in names
    assert "kettle.handle_cup" not in names


def list_texts(tmp_path: Path, text: str) -> list[str]:
    sections = list_sections(extract_kettle(tmp_path, readme=f"# Kettle\n\nKettle boils water.\n\n{text}\n"))
    return [text for title, (_, parts) in sections.items() if title != "Kettle" for _, text in parts]


def test_a_section_says_what_will_or_may_happen_but_not_what_is_planned(tmp_path: Path) -> None:
    behaviour = "A full kettle will boil over. You may want to open the lid first."

    assert list_texts(tmp_path, f"## Filling\n\n{behaviour} A larger lid is planned.") == [behaviour]


def test_an_explanation_may_speak_of_safety_but_a_feature_may_not(tmp_path: Path) -> None:
    explanation = "The lid is secured by a lock."

    assert list_texts(tmp_path, f"## Locking\n\n{explanation} Kettle is safe.") == [explanation]
    assert list_texts(tmp_path, f"## Features\n\n{explanation}") == []


def test_a_sentence_that_continues_a_lost_one_is_lost_too(tmp_path: Path) -> None:
    text = "## Lids\n\nWe love lids. Second, they are round. A lid is flat."

    assert list_texts(tmp_path, text) == ["A lid is flat."]


def test_a_heading_that_names_a_member_is_about_no_topic_and_a_question_is_kept(tmp_path: Path) -> None:
    text = "## API\n\n### kettle.limit\n\nThe most cups of it.\n\n## FAQ\n\n### Is it hot?\n\nThe lid is hot."
    sections = list_sections(extract_kettle(tmp_path, readme=f"# Kettle\n\nKettle boils water.\n\n{text}\n"))

    assert {title: topic for title, (topic, _) in sections.items()} == {
        "Kettle": "introduction",
        "Is it hot?": "questions",
    }
