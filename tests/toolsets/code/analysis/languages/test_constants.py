"""Constants are declarations of their own, at the top of a file and in types."""

import pytest

from cleats.toolsets.code.analysis.extract import extract_facts


@pytest.mark.parametrize(
    ("path", "lang", "source", "expected"),
    [
        ("a.py", "python", "MAX_SIZE = 1\nlogger = 2\nclass Color:\n    RED = 1\n", ["MAX_SIZE", "Color.RED"]),
        ("a.go", "go", "package a\nconst maxSize = 3\nvar other = 1\n", ["maxSize"]),
        ("a.ts", "typescript", "export const MAX = 1;\nclass K { static LIMIT = 3; f = 2; }\n", ["MAX", "K.LIMIT"]),
        ("a.js", "javascript", "const MAX = 1;\nconst other = 2;\n", ["MAX"]),
        ("a.rs", "rust", "pub const MAX: usize = 3;\nstatic other: u8 = 1;\n", ["MAX", "other"]),
        ("a.rb", "ruby", "module M\n  MAX = 3\n  x = 1\nend\n", ["M.MAX"]),
        ("A.java", "java", "class A { static final int MAX = 3; int x = 1; }\nenum E { RED }\n", ["A.MAX", "E.RED"]),
        ("a.c", "c", "static const int LIMIT = 4;\nint g = 1;\nenum e { RED };\n", ["LIMIT", "e.RED"]),
        ("a.cs", "csharp", "class A { const int LIMIT = 2; int x = 1; }\n", ["A.LIMIT"]),
        ("a.php", "php", "<?php\nconst MAX = 3;\nclass A { const LIMIT = 2; }\n", ["MAX", "A.LIMIT"]),
        ("a.kt", "kotlin", "const val MAX = 3\nval other = 1\n", ["MAX"]),
        ("a.swift", "swift", "let MAX = 3\nlet other = 1\n", ["MAX"]),
        ("a.sh", "shell", "MAX_SIZE=3\nother=1\n", ["MAX_SIZE"]),
    ],
)
def test_a_constant_of_one_line_is_found_by_its_name(path: str, lang: str, source: str, expected: list[str]) -> None:
    chunks = extract_facts(path, source.encode(), lang, "code").chunks

    assert [chunk.name for chunk in chunks if chunk.kind == "constant"] == expected


def test_a_macro_with_a_value_is_a_declaration_and_a_guard_is_not() -> None:
    chunks = extract_facts("a.h", b"#define GUARD_H\n#define MAX_SIZE 3\n", "c", "code").chunks

    assert [chunk.name for chunk in chunks if chunk.kind == "macro"] == ["MAX_SIZE"]


def test_a_local_that_is_written_like_a_constant_stays_in_its_function() -> None:
    chunks = extract_facts("a.py", b"def f():\n    MAX_SIZE = 1\n    return MAX_SIZE\n", "python", "code").chunks

    assert [chunk.name for chunk in chunks] == ["f"]
