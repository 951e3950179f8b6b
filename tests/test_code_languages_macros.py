"""Macros in the heads of C and C++, as real headers write them."""

from collections.abc import Callable

import pytest

from cleats.toolsets.code.facts import Chunk
from cleats.toolsets.code.languages import c_macros, easing
from cleats.toolsets.code.languages.engine import declarations

BROKEN = "class API Broken : public Base {\n  int x;\n};\n"
"""Enough for the grammar to fail, so that macros are looked for."""


def named(lang: str, source: str) -> dict[str, Chunk]:
    found = declarations(lang, "shop", source.encode())
    assert found.problem == ""
    return {chunk.name: chunk for chunk in found.chunks}


@pytest.mark.parametrize(
    ("source", "name", "kind", "signature"),
    [
        ("class API Desk : public Base { };", "Desk", "class", "class API Desk : public Base"),
        (
            "class LOCKABLE UNUSED(1) Desk final {\n  int a;\n};",
            "Desk",
            "class",
            "class LOCKABLE UNUSED(1) Desk final",
        ),
        (
            "struct Desk {\n  int take() REQUIRES(lock) REQUIRES(other) { return 1; }\n};",
            "Desk.take",
            "method",
            "int take() REQUIRES(lock) REQUIRES(other)",
        ),
        (
            "namespace a {\nBEGIN_ALL\nclass Desk {\n  DATA\npublic:\n  int x;\n};\n}  //\nEND_ALL",
            "a.Desk",
            "class",
            "class Desk",
        ),
        (
            "API_INLINE std::string\nname(UNUSED int a, char* _Nonnull b) { return b; }",
            "name",
            "function",
            "std::string name(UNUSED int a, char* _Nonnull b)",
        ),
        (
            "struct Desk {\n  Row row GUARDED_BY(lock) = {};\n  void f(Row a = {}) {}\n};",
            "Desk.f",
            "method",
            "void f(Row a = {})",
        ),
    ],
)
def test_a_macro_in_a_head_does_not_hide_what_it_is_about(
    source: str, name: str, kind: str, signature: str
) -> None:
    chunk = named("cpp", BROKEN + source)[name]

    assert (chunk.kind, chunk.signature) == (kind, signature)


def test_a_macro_between_type_and_name_is_neither() -> None:
    found = named(
        "c",
        '#ifdef __cplusplus\nextern "C" {\n#endif\nint EXPORT f(int a, char *RESTRICT b) {\n'
        "  return a;\n}\n#ifdef __cplusplus\n}\n#endif\n",
    )

    assert found["f"].params == ["a", "b"]
    assert found["f"].return_type == "int"


@pytest.mark.parametrize(
    "source",
    [
        b"int f() {\n  return FLAG_A |\n    FLAG_B\n    ;\n}",
        b"enum E {\n  FIRST,\n  LAST\n};",
        b"void f() {\n  if (x) CHECK(y);\n  return DONE;\n}",
        b"UINT32 size;\nint x = CALL(3);\nint MAX(int a);",
    ],
)
def test_what_is_a_name_or_a_call_is_left_as_it_is(source: bytes) -> None:
    assert c_macros.without(source) == source


def test_a_word_of_the_language_is_no_name_of_a_function() -> None:
    found = declarations(
        "c",
        "shop",
        b"int f(int a) {\n#if X\n  if (a) {\n#endif\n  }\n  else if (a > 1) {\n  }\n}\n",
    )

    assert not [chunk.name for chunk in found.chunks if chunk.name.endswith("if")]


def test_a_special_case_of_a_template_is_named_after_the_template() -> None:
    found = named(
        "cpp",
        "template <typename T>\nstruct Has<T, std::void_t<decltype(a() << b<T>())>> : True {};\n",
    )

    assert "Has" in found


@pytest.mark.parametrize(
    "ease", [easing.cpp, easing.typescript, easing.kotlin, easing.swift, easing.java]
)
@pytest.mark.parametrize("piece", [b"\n", b"AAA\n", b"in ", b"( ", b"AAA(", b"<", b"// a\n", b"@ "])
def test_text_is_eased_in_a_time_that_grows_with_its_size(
    ease: Callable[[bytes], bytes], piece: bytes
) -> None:
    """With the square of it, this would take minutes."""
    text = piece * 60_000 + b"AAA"

    assert len(ease(text)) == len(text)
