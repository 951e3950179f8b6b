"""Tests of code snippets: found, freed of prompts, checked by their parser, tagged, unique."""

from pathlib import Path

import pytest

from cleats.system import worker_pool
from cleats.toolsets.launch.snippets.catalogue import SnippetCandidate, has_only_imports
from cleats.toolsets.launch.snippets.syntax import find_faults
from cleats.toolsets.launch.source.text import code_blocks
from tests.support.launch_sources import PYPROJECT_TEXT, extract_snippets
from tests.support.paths import TESTS_FOLDER

SESSION_TEXT = """\
Some words.

>>> import kettle
>>> for cup in range(2):
...     kettle.pour(cup)
...
0
1

>>> kettle.label("a\\nb")
'a\\nb'
"""


def test_a_session_is_the_program_that_was_typed_with_its_outputs_as_comments() -> None:
    assert code_blocks.extract_session_input(SESSION_TEXT) == (
        "import kettle\nfor cup in range(2):\n    kettle.pour(cup)\n\nkettle.label(\"a\\nb\")\n# 'a\\nb'\n"
    )


def test_a_shell_session_is_its_commands() -> None:
    assert code_blocks.extract_commands("$ kettle --cups \\\n    3\npouring\n$ ls\n") == (
        "kettle --cups \\\n    3\nls\n"
    )
    assert code_blocks.extract_commands("pip install x\n# done\n") == "pip install x\n# done\n"


@pytest.mark.parametrize(
    ("language", "good", "bad"),
    [
        ("python", "async def f():\n    return 1\n", "def f(:\n"),
        ("python", ">>> print(1)\n1\n", ">>> print(1\n1\n"),
        ("json", '{"a": 1}', "{a: 1}"),
        ("yaml", "a: [1, 2]\n", "a: [1, 2\n"),
        ("toml", "a = 1\n", "a = \n"),
        ("javascript", "import { a } from 'b';\nconsole.log(a);\n", "const = ;\n"),
        ("typescript", "const a: number = 1;\n", "const a: = 1;\n"),
        ("java", 'System.out.println("a");\n', "class { }\n"),
        ("csharp", "var pot = new Pot();\n", "var = ;\n"),
        ("go", "pot := New()\n", "func {\n"),
        ("rust", 'let a = 1;\nprintln!("{a}");\n', "fn {\n"),
        ("ruby", "puts 'a'\n", "def\n"),
        ("php", "echo 'a';\n", "<?php function {\n"),
        ("swift", 'print("a")\n', "func {\n"),
        ("cpp", "int a = 1;\n", "int = ;\n"),
        ("kotlin", "val a = 1\n", "val = \n"),
        ("shell", "$ pip install x\nFetched x (1 MB)\n", "if then\n"),
    ],
)
def test_each_language_is_judged_by_its_parser(language: str, good: str, bad: str) -> None:
    fine, wrong = find_faults([(good, language), (bad, language)])

    assert fine == ""
    assert wrong


def test_a_language_without_a_parser_is_not_judged(tmp_path: Path) -> None:
    found_snippets = extract_snippets(tmp_path, {"README.md": "# K\n\n```brainfuck\n+++\n```\n"})

    assert find_faults([("+++", "brainfuck")]) == [""]
    assert found_snippets[0]["validation"]["syntax_ok"] is False


def test_code_that_keeps_its_grammar_busy_is_no_program_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kotlin_source = (TESTS_FOLDER / "fixtures/polyglot/Desk.kt").read_bytes()
    # The Kotlin grammar makes millions of empty nodes of this, which takes it minutes.
    torn = kotlin_source[:506] + b"\xaf\x8c<X0q\xcc" + kotlin_source[539:]
    monkeypatch.setattr(worker_pool, "MIN_TASK_CPU_SECONDS", 0.5)

    check_results = find_faults([(torn.decode(errors="replace"), "kotlin"), ("val a = 1", "kotlin")])

    assert check_results == ["its parser crashed or took too long", ""]


README_TEXT = """\
# Kettle

## Install

```console
$ pip install py-kettle
```

## Quick start

```py
import kettle
kettle.boil()
```

## Labels

    >>> import kettle
    >>> kettle.label("a")
    'a'

```python
    import kettle
    if True:
        kettle.boil()
```

## Contributing

```python
import secret
```
"""

SOURCE_FILES = {
    "pyproject.toml": PYPROJECT_TEXT,
    "README.md": README_TEXT,
    "src/kettle/__init__.py": '__all__ = ["boil"]\n'
    'def boil():\n    """Boil water.\n\n    >>> boil()\n    100\n    """\n',
    "examples/brew_tea.py": "import kettle\nimport teapot\n\nkettle.boil()   \n",
    "examples/broken.py": "def (:\n",
    "docs/guide.md": "# Guide\n\n```python\nimport kettle\nkettle.boil()\n```\n",
}


def test_examples_come_first_then_the_readme_then_guides_then_docstrings(tmp_path: Path) -> None:
    found_snippets = extract_snippets(tmp_path, SOURCE_FILES)

    assert [(snippet["source"]["path"], snippet["language"]) for snippet in found_snippets] == [
        ("examples/brew_tea.py", "python"),
        ("examples/broken.py", "python"),
        ("README.md", "shell"),
        ("README.md", "python"),
        ("README.md", "python"),
        ("README.md", "python"),
        ("src/kettle/__init__.py", "python"),
    ]


def test_code_keeps_its_form_but_for_spaces_at_the_ends_of_lines(tmp_path: Path) -> None:
    code = {snippet["source"]["path"]: snippet for snippet in extract_snippets(tmp_path, SOURCE_FILES)}

    assert code["examples/brew_tea.py"]["code"] == "import kettle\nimport teapot\n\nkettle.boil()\n"
    assert code["examples/brew_tea.py"]["requirements"] == {"dependencies": ["py-kettle", "teapot"]}
    assert code["src/kettle/__init__.py"]["code"] == "boil()\n# 100\n"
    assert code["src/kettle/__init__.py"]["source"]["start_line"] == 5


def test_tags_say_where_code_is_from_and_what_it_is_for(tmp_path: Path) -> None:
    found_snippets = extract_snippets(tmp_path, SOURCE_FILES)
    tags = [snippet["tags"] for snippet in found_snippets]

    assert tags[0] == ["example", "brew-tea", "usage"]
    assert tags[2] == ["readme", "install"]
    assert tags[3] == ["readme", "quick-start", "usage", "quickstart", "docs", "guide"]
    assert tags[4] == ["readme", "labels", "usage"]
    assert tags[6] == ["docstring", "boil"]


def test_what_does_not_parse_is_kept_and_said_so(tmp_path: Path) -> None:
    snippets_by_path = {snippet["source"]["path"]: snippet for snippet in extract_snippets(tmp_path, SOURCE_FILES)}

    assert snippets_by_path["examples/broken.py"]["validation"]["syntax_ok"] is False
    assert all("import secret" not in snippet["code"] for snippet in snippets_by_path.values())


def test_indented_code_in_a_fence_is_taken_back_to_the_margin(tmp_path: Path) -> None:
    codes = [snippet["code"] for snippet in extract_snippets(tmp_path, SOURCE_FILES)]

    assert "import kettle\nif True:\n    kettle.boil()\n" in codes


def test_tests_are_shown_only_for_want_of_better(tmp_path: Path) -> None:
    bare = {
        "pyproject.toml": PYPROJECT_TEXT,
        "src/kettle/__init__.py": "",
        "tests/test_kettle.py": "import kettle\n\n"
        "def test_it_boils():\n    assert kettle.boil() == 100\n\n"
        "def test_with_a_fixture(pot):\n    assert kettle.boil() == 100\n",
    }

    found_snippets = extract_snippets(tmp_path, bare)

    assert [snippet["code"] for snippet in found_snippets] == [
        "def test_it_boils():\n    assert kettle.boil() == 100\n"
    ]
    assert found_snippets[0]["tags"][0] == "test"


def test_a_product_without_a_beginning_gets_the_first_code_that_uses_it(tmp_path: Path) -> None:
    found_snippets = extract_snippets(
        tmp_path,
        {
            "package.json": '{"name": "kettle", "version": "1.0.0"}',
            "README.md": "# K\n\n## Pouring\n\n```ts\nimport k from 'kettle'\nk.boil()\n```\n",
        },
        "javascript",
    )

    assert found_snippets[0]["tags"] == ["readme", "pouring", "usage", "quickstart"]


def test_directives_of_documents_are_no_code(tmp_path: Path) -> None:
    guide = "# G\n\n```{note}\nHello\n```\n\n```{code-block} python\nkettle.boil()\n```\n"

    found_snippets = extract_snippets(tmp_path, {"pyproject.toml": PYPROJECT_TEXT, "docs/index.md": guide})

    assert [(snippet["language"], snippet["code"]) for snippet in found_snippets] == [("python", "kettle.boil()\n")]


@pytest.mark.parametrize(
    ("language", "code", "bare"),
    [
        ("python", "import kettle\nfrom kettle import Cup\n", True),
        ("python", '"""About."""\nimport kettle\n', True),
        ("python", "import kettle\nkettle.boil()\n", False),
        ("python", "import kettle\nCUP = 1\n", False),
        ("javascript", "import { pour, boil } from 'kettle'\n", True),
        ("javascript", "import {\n  pour\n} from 'kettle' // or\nimport 'kettle/x';\n", True),
        ("javascript", "const { pour } = require('kettle')\n", True),
        ("javascript", "import k from 'kettle'\nk.boil()\n", False),
        ("javascript", "const cup = require('kettle')()\n", False),
        ("shell", "kettle\n", False),
    ],
)
def test_code_that_only_imports_is_nothing_to_show(language: str, code: str, bare: bool) -> None:
    found_snippet = SnippetCandidate("readme", language, code, "README.md", 1, 2)

    assert has_only_imports(found_snippet) is bare
