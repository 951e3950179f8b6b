"""Linter findings: which linters are run, and that none of them changes a file."""

import sys
from pathlib import Path

import pytest

from cleats.toolsets.code.analysis import lint as running
from cleats.toolsets.code.analysis.lint import (
    Linters,
    LintFinding,
    compute_fingerprint,
    lint_files,
    parse_eslint_output,
    parse_ruff_output,
)

UNUSED_IMPORT = LintFinding(1, 1, "F401", "`os` imported but unused", "ruff")


def write_files(root: Path, **files: str) -> None:
    """Write files; `__` in a name stands for a dot, `_in_` for a slash."""
    for name, text in files.items():
        file = root / name.replace("__", ".").replace("_in_", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def write_program(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", "PATH=/usr/bin:/bin", *lines, ""]))
    path.chmod(0o755)
    return path


def test_findings_are_told_by_file_and_line(tmp_path: Path) -> None:
    write_files(tmp_path, a__py="import os\n", sub_in_b__py="x = 1\nprint(y)\n", c__py="x = 1\n")

    findings = lint_files(tmp_path, {"python": ["a.py", "sub/b.py", "c.py"], "text": ["d.txt"]})

    assert findings == {
        "a.py": [UNUSED_IMPORT],
        "sub/b.py": [LintFinding(2, 2, "F821", "Undefined name `y`", "ruff")],
    }


def test_only_the_given_files_are_linted(tmp_path: Path) -> None:
    write_files(tmp_path, a__py="import os\n", b__py="import os\n")

    assert lint_files(tmp_path, {"python": ["a.py"]}).keys() == {"a.py"}
    assert lint_files(tmp_path, {}) == {}


@pytest.mark.parametrize(("bound", "most"), [("MAX_BATCH_FILES", 2), ("MAX_BATCH_CHARS", 14), ("MAX_BATCH_CHARS", 1)])
def test_many_files_are_linted_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    monkeypatch.setattr(running, bound, most)
    names = [f"m{number}.py" for number in range(5)]
    for name in names:
        (tmp_path / name).write_text("import os\n")

    assert lint_files(tmp_path, {"python": names}) == {name: [UNUSED_IMPORT] for name in names}


def test_a_syntax_error_is_a_finding(tmp_path: Path) -> None:
    write_files(tmp_path, a__py="def f(:\n")

    (finding, *_) = lint_files(tmp_path, {"python": ["a.py"]})["a.py"]

    assert "syntax" in finding.code


def test_a_repository_says_which_rules_it_has(tmp_path: Path) -> None:
    write_files(tmp_path, a__py="import os\nl = 1\n", pyproject__toml="[tool.ruff.lint]\nselect=['E741']")
    write_files(tmp_path, sub_in_b__py="import os\n", sub_in_ruff__toml="exclude = ['b.py']")

    findings = lint_files(tmp_path, {"python": ["a.py", "sub/b.py"]})

    assert [finding.code for finding in findings["a.py"]] == ["E741"]
    assert "sub/b.py" not in findings


def test_settings_of_the_folder_above_a_repository_do_not_count(tmp_path: Path) -> None:
    write_files(tmp_path, ruff__toml="lint.select = ['E741']", repo_in_a__py="import os\n")
    write_files(tmp_path, repo_in_pyproject__toml="[project]\nname = 'x'\n")

    assert lint_files(tmp_path / "repo", {"python": ["a.py"]}) == {"a.py": [UNUSED_IMPORT]}


def test_nothing_is_fixed_though_the_settings_ask_for_it(tmp_path: Path) -> None:
    write_files(tmp_path, a__py="import os\n", ruff__toml="fix = true\nfix-only = true\n")

    findings = lint_files(tmp_path, {"python": ["a.py"]})

    assert findings == {"a.py": [UNUSED_IMPORT]}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "ruff.toml"]
    assert (tmp_path / "a.py").read_text() == "import os\n"


def test_settings_that_make_no_sense_are_a_warning(tmp_path: Path) -> None:
    write_files(tmp_path, a__py="import os\n", ruff__toml="nonsense = 1\n")
    warnings: list[str] = []

    findings = lint_files(tmp_path, {"python": ["a.py"]}, warn=warnings.append)

    assert findings == {}
    assert len(warnings) == 1
    assert warnings[0].startswith("ruff failed: ")


def test_a_file_that_is_named_like_an_option_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "--fix.py").write_text("import os\n")

    assert lint_files(tmp_path, {"python": ["--fix.py"]}) == {"--fix.py": [UNUSED_IMPORT]}


def test_a_file_with_too_many_findings_keeps_the_first(tmp_path: Path) -> None:
    write_files(tmp_path, a__py="print(x)\n" * 500)

    findings = lint_files(tmp_path, {"python": ["a.py"]})["a.py"]

    assert [finding.line for finding in findings] == list(range(1, 201))


def test_a_repository_in_a_linked_folder_has_findings(tmp_path: Path) -> None:
    write_files(tmp_path, real_in_a__py="import os\n")
    (tmp_path / "link").symlink_to("real")

    assert lint_files(tmp_path / "link", {"python": ["a.py"]}) == {"a.py": [UNUSED_IMPORT]}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository that contains its own linters, on a machine that has none."""
    root = tmp_path / "repo"
    write_program(root / ".venv/bin/ruff", "touch sprung")
    write_program(root / "node_modules/.bin/eslint", "touch sprung", f"cat {root}/answer.json")
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(Path(sys.executable).resolve())
    monkeypatch.setattr("sys.executable", str(python))
    monkeypatch.setenv("PATH", f"{root}/.venv/bin:/usr/bin:/bin")
    return root


def test_linters_of_a_repository_are_not_run_unless_its_code_may(checkout: Path) -> None:
    write_files(checkout, a__py="", a__js="")

    findings = lint_files(checkout, {"python": ["a.py"], "javascript": ["a.js"]})

    assert findings == {}
    assert not (checkout / "sprung").exists()
    assert Linters.discover(checkout) == Linters(None, None)
    assert Linters.discover(checkout, run_repository_code=True) == Linters(
        str(checkout / ".venv/bin/ruff"), str(checkout / "node_modules/.bin/eslint")
    )


def test_a_linter_that_is_missing_has_no_program(checkout: Path) -> None:
    trusted = Linters.discover(checkout, run_repository_code=True)

    assert Linters.discover(checkout).programs == {"ruff": None, "eslint": None}
    assert None not in trusted.programs.values()


def test_a_linter_is_found_in_a_folder_that_is_named(checkout: Path, tmp_path: Path) -> None:
    ruff_path = write_program(tmp_path / "ours" / "ruff")

    assert Linters.discover(checkout, search=[tmp_path / "ours"]).ruff == str(ruff_path)


def test_eslint_is_asked_when_a_repositorys_code_may_run(checkout: Path) -> None:
    write_files(
        checkout,
        answer__json=f"""[
          {{"filePath": "{checkout}/a.js", "messages": [
            {{"ruleId": "no-var", "severity": 2, "message": "Unexpected var.",
              "line": 3, "endLine": 4}},
            {{"ruleId": null, "severity": 1, "message": "File ignored."}},
            {{"ruleId": null, "fatal": true, "message": "Parsing error", "line": 1}}]}},
          {{"filePath": "/elsewhere/b.js", "messages": [{{"ruleId": "x", "message": "x"}}]}}]""",
    )
    linters = Linters.discover(checkout, run_repository_code=True)

    findings = lint_files(checkout, {"javascript": ["a.js"]}, linters=linters)

    assert findings == {
        "a.js": [
            LintFinding(1, 1, "syntax", "Parsing error", "eslint"),
            LintFinding(3, 4, "no-var", "Unexpected var.", "eslint"),
        ]
    }


@pytest.mark.parametrize(
    ("lines", "warning"),
    [
        (["echo 'no config' >&2", "exit 2"], "eslint failed: no config"),
        (["echo hello"], "eslint printed unexpected output"),
    ],
)
def test_an_eslint_that_fails_is_a_warning(checkout: Path, lines: list[str], warning: str) -> None:
    broken = write_program(checkout / "node_modules/.bin/eslint", *lines)
    warnings: list[str] = []

    linters = Linters(None, str(broken))
    findings = lint_files(checkout, {"tsx": ["a.tsx"]}, linters=linters, warn=warnings.append)

    assert findings == {}
    assert warnings[0].startswith(warning)


def test_a_linter_that_cannot_be_started_is_a_warning(tmp_path: Path) -> None:
    warnings: list[str] = []

    linters = Linters(str(tmp_path / "gone"), None)
    lint_files(tmp_path, {"python": ["a.py"]}, linters=linters, warn=warnings.append)

    assert len(warnings) == 1


def test_answers_that_make_no_sense_are_passed_over() -> None:
    assert list(parse_ruff_output(b"hello\n{}\n")) == []
    assert list(parse_ruff_output(b'{"filename": "a", "message": "m", "code": null}')) == [
        ("a", LintFinding(1, 1, "syntax", "m", "ruff"))
    ]
    assert list(parse_eslint_output(b"", lambda _: None)) == []


def test_other_settings_or_another_linter_change_the_fingerprint(tmp_path: Path) -> None:
    first = Linters(str(write_program(tmp_path / "1" / "ruff")), None)
    second = Linters(str(write_program(tmp_path / "2" / "ruff", "# another")), None)
    write_files(tmp_path, repo_in_a__py="", repo_in_sub_in_b__py="")
    root = tmp_path / "repo"
    paths = ["a.py", "sub/b.py"]

    def take_fingerprint(linters: Linters = first) -> str:
        return compute_fingerprint(root, paths, linters=linters)

    prints = [take_fingerprint(), take_fingerprint(second), take_fingerprint(Linters(None, None))]
    write_files(root, a__py="changed")
    assert take_fingerprint() == prints[0]
    write_files(root, ruff__toml="line-length = 80")
    prints.append(take_fingerprint())
    write_files(root, sub_in_ruff__toml="line-length = 80")
    prints.append(take_fingerprint())

    assert len(set(prints)) == 5
