"""Tests of what a launch says about names and tasks in the words of a repository's documents."""

import json
from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.launch.drafting.first_program import choose_first_program, render_first_program
from cleats.toolsets.launch.drafting.material import LaunchMaterial
from cleats.toolsets.launch.drafting.page_context import PageContext
from cleats.toolsets.launch.drafting.tasks import render_tasks
from cleats.toolsets.launch.drafting.token_renderers import TOKEN_RENDERERS
from cleats.toolsets.launch.snippets import catalogue
from cleats.toolsets.launch.source.api.docstrings import extract_first_sentence
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence import inventory
from cleats.toolsets.launch.source.languages import LANGUAGES
from cleats.toolsets.launch.source.text import english
from tests.support import launch_sources
from tests.support.launch_sources import SOURCE_SHA, SOURCE_URL, extract_facts

PACKAGE_JSON = json.dumps({"name": "p-kettle", "version": "1.0.0", "types": "index.d.ts", "main": "index.js"})
TYPES_TEXT = """\
export type Kettle = {
	/**
	The number of cups.
	*/
	readonly cups: number;
	heat: number;
	size?: {inner: number};
};

export function pour(cup: string): void;
export function fill(cup: string): void;
"""
README_TEXT = """\
# p-kettle

## API

- `pour(cup)`: Pours a cup of tea. It is warm.

### fill(cup)

Fills the cup, e.g.:

### kettle.heat

The heat of the water.
"""


def list_summaries(files: dict[str, str | bytes], tmp_path: Path, platform: str) -> dict[str, str]:
    surface = extract_facts(tmp_path, files, platform, name="").product_facts["api_surface_summary"]
    symbols = [*surface["classes"], *surface["functions"]]
    return {item["name"]: item["summary"] for symbol in symbols for item in (symbol, *symbol.get("members", ()))}


def test_a_name_has_the_purpose_that_a_list_or_a_heading_of_a_document_states(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"package.json": PACKAGE_JSON, "index.d.ts": TYPES_TEXT, "README.md": README_TEXT}

    assert list_summaries(files, tmp_path, "typescript") == {
        "Kettle": "",
        "Kettle.cups": "The number of cups.",
        "Kettle.heat": "The heat of the water.",
        "Kettle.size": "",
        "pour": "Pours a cup of tea.",
        "fill": "Fills the cup.",
    }


def test_a_remark_between_developers_is_no_purpose(tmp_path: Path) -> None:
    kettle, pour = "// hoisted for cyclic imports\nclass Kettle {}\n", "// Pours a cup.\nfunction pour() {}\n"
    code = f"{kettle}{pour}module.exports = {{Kettle, pour}}\n"
    files: dict[str, str | bytes] = {
        "package.json": json.dumps({"name": "p-kettle", "version": "1.0.0", "main": "index.js"}),
        "index.js": code,
    }

    assert list_summaries(files, tmp_path, "javascript") == {"Kettle": "", "pour": "Pours a cup."}


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("We can also combine both.", "You can also combine both."),
        ("Let's pour a cup, so we have tea.", "Pour a cup, so you have tea."),
        ("Please note that the lid is hot.", "Note that the lid is hot."),
        ("As you saw above, the kettle boils (see the lid).", "The kettle boils."),
        ("We maintain the kettle.", "We maintain the kettle."),
    ],
)
def test_a_sentence_of_a_tutorial_addresses_its_reader(sentence: str, expected: str) -> None:
    assert english.address_reader(sentence) == expected


def test_only_modules_that_the_package_imports_are_its_dependencies_in_go(tmp_path: Path) -> None:
    module = (
        "module example.com/kettle\n\ngo 1.21\n\nrequire (\n\texample.com/lid v1.0.0\n\texample.com/check v1.0.0\n)\n"
    )
    files = {
        "go.mod": module,
        "kettle.go": 'package kettle\n\nimport "example.com/lid/hot"\n',
        "kettle_test.go": 'package kettle\n\nimport "example.com/check"\n',
    }
    tree = launch_sources.write_tree(tmp_path, files)
    reader = next(language for language in LANGUAGES if language.ecosystem == "go").manifest_readers[0]
    manifest = reader(tree)

    assert manifest is not None
    assert [item.value for item in manifest.dependencies or ()] == ["example.com/lid"]


def test_the_library_of_a_maven_build_is_the_module_with_the_most_code_that_is_no_test(tmp_path: Path) -> None:
    def pom(artifact: str, more: str) -> str:
        return (
            f"<project><groupId>org.kettle</groupId><artifactId>{artifact}</artifactId><version>1.0</version>"
            f"{more}</project>"
        )

    parts = "<packaging>pom</packaging><name>Kettle Kit</name><description>A library to boil water</description>"
    files = {
        "pom.xml": pom("kettle-parent", parts),
        "kettle/pom.xml": pom("kettle-kit", ""),
        "kettle/src/main/java/kettle/Kettle.java": "package kettle;\n\npublic class Kettle {}\n",
        "checks/pom.xml": pom("kettle-checks", ""),
        "checks/src/test/java/kettle/KettleTest.java": "package kettle;\n" + "// check\n" * 500,
    }
    facts = extract_facts(tmp_path, dict(files), "java", name="").product_facts

    assert facts["product_name"] == "Kettle Kit"
    assert facts["distribution"][0]["identifier"] == "org.kettle:kettle-kit"
    assert facts["positioning"]["short_description"] == "Kettle Kit is a library to boil water."


def build_material(tmp_path: Path, readme: str, code: str) -> LaunchMaterial:
    files: dict[str, str | bytes] = {
        "pyproject.toml": '[project]\nname = "kettle"\nversion = "1.0"\n',
        "README.md": readme,
        "kettle/__init__.py": code,
    }
    facts, evidence = extract_facts(tmp_path, files, name="")
    tree = CheckoutTree(tmp_path)
    listed = inventory.take_inventory(tree, SOURCE_URL, SOURCE_SHA)
    snippets: dict[str, Any] = catalogue.build_catalogue(tree, listed, facts, "python")
    return LaunchMaterial(facts, evidence, snippets, {"target_platform": "python"})


CODE_TEXT = "def pour(cup):\n    ...\n\n\ndef clean(acid):\n    ...\n"
GUIDE_TEXT = """\
# kettle

## Cleaning with acid

Remove the lime:

```python
import kettle

kettle.clean("acid")
kettle.clean("acid")
kettle.pour("water")
```

## Usage

Pour a cup of tea with one call.

```python
import kettle

kettle.pour("tea")
```

## Descaling

The following cups exist:

![cups](cups.png)

These cups are all too small for a kettle that holds so much water, and that is why nobody uses them any more.

## More cups

```python
import kettle

for cup in ("oolong", "sencha", "assam", "darjeeling", "earl grey", "lapsang souchong"):
    kettle.pour(cup)
```
"""


def test_the_first_program_is_that_of_the_usage_with_the_sentence_above_it(tmp_path: Path) -> None:
    material = build_material(tmp_path, GUIDE_TEXT, CODE_TEXT)
    program = choose_first_program(material)

    assert program is not None
    assert program.code == 'import kettle\n\nkettle.pour("tea")'
    text = render_first_program(PageContext(material=material))
    assert text.startswith("Pour a cup of tea with one call. <!-- claims:")
    assert "From `README.md`" not in text


def test_a_guide_has_no_code_without_a_sentence_and_no_sentence_about_what_is_lost(tmp_path: Path) -> None:
    text = render_tasks(PageContext(material=build_material(tmp_path, GUIDE_TEXT, CODE_TEXT)))

    assert "## More cups\n\nThis example uses `pour`:\n\n```python" in text
    assert "Descaling" not in text
    assert "These cups" not in text


def test_metadata_that_a_setup_program_takes_from_a_file_of_the_package_is_read_there(tmp_path: Path) -> None:
    setup = (
        "from setuptools import setup\n\nneeded = ['valve>=2']\nabout = {}\n"
        "exec(open('kettle/__version__.py').read(), about)\n"
        "setup(name=about['__title__'], version=about['__version__'], packages=['kettle'], install_requires=needed)\n"
    )
    files: dict[str, str | bytes] = {
        "setup.py": setup,
        "kettle/__init__.py": CODE_TEXT,
        "kettle/__version__.py": "__title__ = 'py-kettle'\n__version__ = '1.2'\n",
    }
    facts, evidence = extract_facts(tmp_path, files, name="")
    places = {
        claim["claim_text"]: [(item["path"], item["start_line"]) for item in claim["citations"]]
        for claim in evidence["claims"]
    }

    assert (facts["product_name"], facts["version"]) == ("py-kettle", "1.2")
    assert places["The version of py-kettle in this repository is 1.2."] == [("kettle/__version__.py", 2)]
    assert places["py-kettle depends on `valve` at run time."] == [("setup.py", 3)]


def test_documents_are_read_in_the_order_of_the_index_that_names_them(tmp_path: Path) -> None:
    code = "\n\n```python\nimport kettle\n\nkettle.pour()\n```\n"
    files: dict[str, str | bytes] = {
        "pyproject.toml": '[project]\nname = "kettle"\nversion = "1.0"\n',
        "README.md": "# kettle\n\nRead [the start](docs/pouring.md) and [more](docs/advanced.md).\n",
        "docs/advanced.md": f"# Advanced pouring\n\nPour it twice.{code}",
        "docs/pouring.md": f"# Pouring\n\nPour it once.{code}",
        "kettle/__init__.py": CODE_TEXT,
    }
    sections = extract_facts(tmp_path, files, name="").product_facts["document_sections"]

    assert [section["title"] for section in sections if section["topic"] == "task"] == ["Pouring", "Advanced pouring"]


def test_a_declaration_is_no_first_program(tmp_path: Path) -> None:
    declaration, call = "def pour(cup):\n    ...\n", "import kettle\n\nkettle.pour(1)\n"
    readme = f"# kettle\n\n## Usage\n\n```python\n{declaration}```\n\n## Tea\n\n```python\n{call}```\n"
    program = choose_first_program(build_material(tmp_path, readme, CODE_TEXT))

    assert program is not None
    assert program.code == "import kettle\n\nkettle.pour(1)"


def test_a_guide_shows_the_only_task_and_an_index_shows_a_whole_list_of_features(tmp_path: Path) -> None:
    readme = (
        "# kettle\n\nPackage kettle is a fast boiler of water, ready to be used safely.\n\n"
        "Features:\n\n- Boils water\n- Korean\n"
        "- Pours tea\n\n## Usage\n\nPour a cup of tea with one call.\n\n"
        "```python\nimport kettle\n\nkettle.pour(1)\n```\n"
    )
    context = PageContext(material=build_material(tmp_path, readme, CODE_TEXT))

    assert "## Usage\n\nPour a cup of tea with one call. <!-- claims:" in render_tasks(context)
    about = TOKEN_RENDERERS["ABOUT"](context)
    assert about.startswith("Package kettle is a boiler of water. <!-- claims:")
    assert "Korean" not in about
    assert [line.partition(" <!--")[0] for line in TOKEN_RENDERERS["FEATURES"](context).splitlines()] == [
        "- Boils water",
        "- Korean",
        "- Pours tea",
    ]


def test_the_parameters_of_a_function_type_are_no_properties(tmp_path: Path) -> None:
    handler = "export type Handler = (\n\tcup: string,\n\theat: number\n) => void;\n"
    types = f"{handler}\nexport function pour(cup: string): void;\n"
    files: dict[str, str | bytes] = {"package.json": PACKAGE_JSON, "index.d.ts": types}

    assert list_summaries(files, tmp_path, "typescript") == {"Handler": "", "pour": ""}


def test_type_declarations_beside_the_code_are_read_without_a_field_that_names_them(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "package.json": json.dumps({"name": "p-kettle", "version": "1.0.0", "exports": "./index.js"}),
        "index.js": "export default function pour() {}\n",
        "index.d.ts": "/**\nPour a cup.\n*/\nexport default function pour(cup: string): void;\n",
    }

    assert list_summaries(files, tmp_path, "javascript") == {"pour": "Pour a cup."}


def test_of_two_programs_for_beginners_the_first_in_the_document_is_the_first_program(tmp_path: Path) -> None:
    readme = (
        "# kettle\n\n## Usage\n\n```python\nimport kettle\n\nkettle.pour(1)\n```\n\n"
        "### Example\n\n```python\nimport kettle\n\nkettle.clean(1)\n```\n"
    )
    program = choose_first_program(build_material(tmp_path, readme, CODE_TEXT))

    assert program is not None
    assert program.code.endswith("kettle.pour(1)")


def test_a_heading_in_a_reference_that_is_a_name_describes_it(tmp_path: Path) -> None:
    readme = "# p-kettle\n\n## API\n\n### pour\n\nPours a cup of tea.\n\n## fill\n\nFill in the form first.\n"
    files = {"package.json": PACKAGE_JSON, "index.d.ts": TYPES_TEXT, "README.md": readme}

    surface = extract_facts(tmp_path, files, "javascript").product_facts["api_surface_summary"]

    assert {item["name"]: item["summary"] for item in surface["functions"]} == {
        "pour": "Pours a cup of tea.",
        "fill": "",
    }


def test_addresses_in_documentation_comments_are_left_out_of_purposes() -> None:
    docs = [
        "Pour [tea](https://example.org/tea) into a cup (see <https://example.org/cup>).",
        "Pour tea <https://example.org/tea>.",
    ]

    assert [extract_first_sentence(doc) for doc in docs] == ["Pour tea into a cup.", "Pour tea."]
