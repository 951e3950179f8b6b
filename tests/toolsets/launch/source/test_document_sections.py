"""Tests of what is read from documents, docstrings and command lines, in the words of the repository."""

from pathlib import Path
from typing import Any

from cleats.toolsets.launch.source.api.docstrings import find_notes
from cleats.toolsets.launch.source.text.code_blocks import extract_session_input
from tests.support.launch_sources import ExtractedFacts, draft_pages, extract_facts, strip_markers

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


def read_guide(tmp_path: Path, readme: str) -> str:
    """Return the guide that is written from a readme, as people read it."""
    code = 'def pour(tea):\n    """Pour a cup of tea."""\n'
    files = {"pyproject.toml": PYPROJECT_TEXT, "README.md": readme, "kettle/__init__.py": code}
    written = draft_pages(tmp_path, files)
    return strip_markers(written["docs/developer-guide"].body) if "docs/developer-guide" in written else ""


POUR_CODE = "```python\nimport kettle\n\nkettle.pour('oolong')\nkettle.pour('assam')\n```\n"
INTRO_TEXT = f"# Kettle\n\nKettle is a kettle.\n\n## Usage\n\nPour tea:\n\n{POUR_CODE}\n"


def test_a_caption_above_code_leads_to_it(tmp_path: Path) -> None:
    readme = INTRO_TEXT + f"## Cups of tea\n\nSimple pouring of tea\n\n{POUR_CODE.replace('oolong', 'sencha')}"

    assert "Simple pouring of tea:\n\n```python\nimport kettle\n\nkettle.pour('sencha')" in read_guide(tmp_path, readme)


def test_a_list_that_repeats_items_of_its_own_document_stays(tmp_path: Path) -> None:
    readme = INTRO_TEXT + (
        "## Search order\n\nIn the kitchen, the cup is the first of these:\n\n- the blue cup\n- the red cup\n\n"
        "In the garden, the cup is the first of these:\n\n- the red cup\n- the blue cup\n"
    )

    guide = read_guide(tmp_path, readme)

    assert guide.count("- the red cup") == 2
    assert "In the garden, the cup is the first of these:" in guide


def test_text_about_the_project_is_no_task(tmp_path: Path) -> None:
    building = "Building requires a compiler. From a shell, run `make` without arguments to run all of the checks.\n"
    readme = INTRO_TEXT + (
        f"## Building\n\n{building}\n## Cups\n\nThe cups are blue and hold exactly 200 ml of hot green tea each. "
        "You can also discuss them on the discussion forum. More samples can be found in the examples directory. "
        "As already described you can pour the tea into them, which takes about three minutes.\n"
    )

    guide = read_guide(tmp_path, readme)

    assert "Building" not in guide
    assert "The cups are blue and hold exactly 200 ml of hot green tea each. You can pour the tea" in guide


def test_a_warning_is_kept_although_its_authors_only_guess(tmp_path: Path) -> None:
    readme = INTRO_TEXT + (
        f"## Pouring twice\n\nPour two cups:\n\n{POUR_CODE.replace('oolong', 'mate')}\n"
        "> [!CAUTION]\n> If both cups are full, probably one of them will spill!\n\n"
        "The lid is simple but **not** thermally safe.\n"
    )

    guide = read_guide(tmp_path, readme)

    assert "**Caution:** If both cups are full, probably one of them will spill." in guide
    assert "The lid is simple but not thermally safe." in guide


def test_the_headings_of_a_document_whose_title_is_an_image_have_their_topics(tmp_path: Path) -> None:
    readme = (
        "![Kettle](kettle.svg)\n\nKettle is a kettle.\n\n## Usage\n\nPour tea:\n\n"
        f"{POUR_CODE}\n## FAQ\n\n### Where is the lid?\n\nThe lid is under the table in the kitchen, as always.\n"
        "\n## 256 cups and more\n\nPour many cups of tea at once, which needs a large kettle and a long table:\n\n"
        f"{POUR_CODE.replace('oolong', 'mate')}"
    )

    guide = read_guide(tmp_path, readme)

    assert "## Questions\n\n### Where is the lid?" in guide
    assert "## 256 cups and more\n" in guide


def introduce_product(tmp_path: Path, readme: str, description: str = "") -> str:
    """Return the first page of a product that is called Kettle."""
    pyproject = f'[project]\nname = "kettle"\nversion = "1"\ndescription = "{description}"\n'
    files = {"pyproject.toml": pyproject, "README.md": readme, "kettle/__init__.py": ""}
    return strip_markers(draft_pages(tmp_path, files)["docs/_index"].body)


def test_the_product_is_introduced_by_its_tagline_if_nothing_else_says_what_it_is(tmp_path: Path) -> None:
    page = introduce_product(tmp_path, "# Kettle\n\n- Ability to nest cups\n", "Kitchen water boiling done right")

    assert page.startswith('Kettle describes itself as "Kitchen water boiling done right".\n')


def test_a_smiley_ends_a_sentence(tmp_path: Path) -> None:
    readme = "# Kettle\n\nKettle is a lightweight vessel optimized for your joy :)\nIt has a lid made of steel.\n"

    assert introduce_product(tmp_path, readme).startswith("Kettle is a vessel.\n\nIt has a lid made of steel.\n")


def test_the_product_is_spelled_as_its_documents_spell_it(tmp_path: Path) -> None:
    readme = (
        "![logo](l.svg)\n\nTeaPot is a pot. TeaPot is blue.\n\n## Usage\n\nThe lid of TeaPot is red. Import `teapot`.\n"
    )
    pyproject = '[project]\nname = "teapot"\nversion = "1"\n'

    facts = extract_facts(
        tmp_path, {"pyproject.toml": pyproject, "README.md": readme, "teapot/__init__.py": ""}, name=""
    )

    assert facts.product_facts["product_name"] == "TeaPot"


def test_lines_below_an_open_bracket_belong_to_the_input_of_a_session() -> None:
    session = ">>> pour([\n        'oolong',\n        'assam'])\n2\n"

    assert extract_session_input(session) == "pour([\n        'oolong',\n        'assam'])\n# 2\n"


def test_the_options_of_a_command_are_found_where_its_function_is_imported_from(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": PYPROJECT_TEXT.replace("kettle.cli:main", "kettle.__main__:main"),
        "kettle/__init__.py": "",
        "kettle/__main__.py": "from .cli import main\n\nmain()\n",
        "kettle/cli.py": CLI_TEXT,
    }

    command = extract_facts(tmp_path, files, name="").product_facts["commands"][0]

    assert [argument["name"] for argument in command["arguments"]][:2] == ["--cups", "clean"]


def test_a_go_module_is_described_by_its_package(tmp_path: Path) -> None:
    code = "/*\nPackage kettle converts cold water to hot\nwater and back. It is blue.\n*/\npackage kettle\n"
    files = {"go.mod": "module example.org/kettle\n\ngo 1.20\n", "kettle.go": code}

    positioning = extract_facts(tmp_path, files, "go", name="").product_facts["positioning"]

    assert positioning["short_description"] == "kettle converts cold water to hot water and back."


def test_the_import_that_a_readme_shows_first_is_above_the_first_program(tmp_path: Path) -> None:
    readme = (
        '# Kettle\n\nKettle is a kettle.\n\n## Usage\n\nImport it:\n\n```go\nimport k "example.org/kettle"\n```\n\n'
        "Pour a cup:\n\n```go\nk.Pour()\n```\n"
    )
    code = "package kettle\n\n// Pour fills a cup.\nfunc Pour() {}\n"
    files = {"go.mod": "module example.org/kettle\n\ngo 1.20\n", "README.md": readme, "kettle.go": code}

    page = strip_markers(draft_pages(tmp_path, files, "go")["docs/getting-started"].body)

    assert 'Import it:\n\n```go\nimport k "example.org/kettle"\n```\n\nPour a cup:\n\n```go\nk.Pour()' in page


def test_a_program_without_its_import_says_which_one_it_needs(tmp_path: Path) -> None:
    readme = "# Kettle\n\nKettle is a kettle.\n\n## Usage\n\nPour:\n\n```python\npour('oolong')\n```\n"
    files = {"pyproject.toml": PYPROJECT_TEXT, "README.md": readme, "kettle/__init__.py": "def pour(tea): ...\n"}

    page = strip_markers(draft_pages(tmp_path, files)["docs/getting-started"].body)

    assert "The example needs the import `from kettle import pour`." in page


def test_a_section_whose_code_is_lost_is_left_out_with_the_reason(tmp_path: Path) -> None:
    readme = (
        INTRO_TEXT + "## Magic\n\nLoad the magic with the extension of the kettle:\n\n```python\n%load kettle\n```\n"
    )
    files = {"pyproject.toml": PYPROJECT_TEXT, "README.md": readme, "kettle/__init__.py": "def pour(tea): ...\n"}

    page = draft_pages(tmp_path, files)["docs/developer-guide"]

    assert "Magic" not in page.body
    assert page.omitted["Magic"] == "Its code does not parse, so that the text has nothing to explain."


def test_an_example_in_java_documentation_is_shown(tmp_path: Path) -> None:
    code = (
        "package org.tea;\n\n/**\n * Boils water.\n * <pre>{@code\n * Kettle kettle = new Kettle();\n"
        " * kettle.boil();\n * List<Cup> cups = kettle.pour();\n * }</pre>\n */\npublic class Kettle {}\n"
    )
    pom = "<project><groupId>org.tea</groupId><artifactId>kettle</artifactId><version>1.0</version></project>\n"
    files = {"pom.xml": pom, "src/main/java/org/tea/Kettle.java": code}

    page = strip_markers(draft_pages(tmp_path, files, "java")["docs/getting-started"].body)

    assert "Kettle kettle = new Kettle();\nkettle.boil();\nList<Cup> cups = kettle.pour();\n```" in page


def test_an_example_is_shown_without_the_header_about_its_licence(tmp_path: Path) -> None:
    example = "/*\n * Copyright 2020 Tea\n */\nconst kettle = require('kettle')\n\nkettle.pour()\nkettle.fill()\n"
    files = {
        "package.json": '{"name": "kettle", "version": "1.0.0", "main": "index.js"}',
        "index.js": "exports.pour = pour\nfunction pour() {}\n",
        "examples/pour.js": example,
    }

    page = strip_markers(draft_pages(tmp_path, files, "javascript")["docs/getting-started"].body)

    assert "```javascript\nconst kettle = require('kettle')" in page
    assert "Copyright" not in page


def test_commands_that_install_an_extra_of_the_package_are_shown(tmp_path: Path) -> None:
    readme = (
        INTRO_TEXT + '## Command line\n\nUse the command:\n\n```sh\npip install "py-kettle[cli]"\nkettle pour\n```\n'
    )
    pyproject = PYPROJECT_TEXT + "[project.optional-dependencies]\ncli = ['click']\n"
    files = {"pyproject.toml": pyproject, "README.md": readme, "kettle/__init__.py": "def pour(tea): ...\n"}

    page = strip_markers(draft_pages(tmp_path, files)["docs/developer-guide"].body)

    assert '```shell\npip install "py-kettle[cli]"\nkettle pour\n```' in page


def test_a_subcommand_has_the_name_that_its_decorator_gives(tmp_path: Path) -> None:
    cli = '@cli.command(name="list")\ndef list_cups():\n    """List the cups."""\n'
    files = {"pyproject.toml": PYPROJECT_TEXT, "kettle/__init__.py": "", "kettle/cli.py": f"import click\n\n{cli}"}

    command = extract_facts(tmp_path, files, name="").product_facts["commands"][0]

    assert [argument["name"] for argument in command["arguments"]] == ["list"]
