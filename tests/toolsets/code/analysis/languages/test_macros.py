"""Macros in declaration headers of C and C++, as real header files write them."""

from collections.abc import Callable

import pytest

from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.analysis.languages import grammar_workarounds
from cleats.toolsets.code.analysis.languages.engine import parse_declarations

BROKEN_CLASS = "class API Broken : public Base {\n  int x;\n};\n"
"""A class that the grammar cannot parse, so that macros are looked for."""


def parse_chunks(lang: str, source: str) -> dict[str, Chunk]:
    parsed_file = parse_declarations(lang, "shop", source.encode())
    assert parsed_file.problem == ""
    return {chunk.name: chunk for chunk in parsed_file.chunks}


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
def test_a_macro_in_a_head_does_not_hide_what_it_is_about(source: str, name: str, kind: str, signature: str) -> None:
    chunk = parse_chunks("cpp", BROKEN_CLASS + source)[name]

    assert (chunk.kind, chunk.signature) == (kind, signature)


def test_a_macro_between_type_and_name_is_neither() -> None:
    chunks = parse_chunks(
        "c",
        '#ifdef __cplusplus\nextern "C" {\n#endif\nint EXPORT f(int a, char *RESTRICT b) {\n'
        "  return a;\n}\n#ifdef __cplusplus\n}\n#endif\n",
    )

    assert chunks["f"].params == ["a", "b"]
    assert chunks["f"].return_type == "int"


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
    assert grammar_workarounds.blank_macros(source) == source


def test_a_word_of_the_language_is_no_name_of_a_function() -> None:
    parsed_file = parse_declarations(
        "c",
        "shop",
        b"int f(int a) {\n#if X\n  if (a) {\n#endif\n  }\n  else if (a > 1) {\n  }\n}\n",
    )

    assert not [chunk.name for chunk in parsed_file.chunks if chunk.name.endswith("if")]


def test_a_special_case_of_a_template_is_named_after_the_template() -> None:
    chunks = parse_chunks(
        "cpp",
        "template <typename T>\nstruct Has<T, std::void_t<decltype(a() << b<T>())>> : True {};\n",
    )

    assert "Has" in chunks


@pytest.mark.parametrize("lang", ["c", "cpp"])
def test_a_condition_around_an_argument_costs_no_function(lang: str) -> None:
    source = """int first(int a) {
    return call(a,
#ifdef WIDE
        wide(a),
#else
        narrow(a), {
#endif
        1);
}
int second(void) { return 2; }
"""

    chunks = parse_chunks(lang, source)

    assert list(chunks) == ["first", "second"]
    assert chunks["first"].calls == ["wide", "call"]
    assert (chunks["first"].start_line, chunks["first"].end_line) == (1, 9)


def test_a_condition_around_the_head_of_a_body_costs_no_function() -> None:
    source = """int first(int a) {
#if 0
    if (a == 1) {
#elif defined(WIDE)
    if (a > 2) {
#else
    if (a > 3) {
#endif
        return 1;
    }
#ifdef WIDE
    while (more()) {
#endif
        a = next();
#ifdef WIDE
    }
#endif
    return 2;
}
int second(void) { return 2; }
"""

    chunks = parse_chunks("c", source)

    assert {name: chunk.end_line for name, chunk in chunks.items()} == {"first": 19, "second": 20}
    assert chunks["first"].calls == ["more", "next"]


def test_both_branches_of_a_condition_are_read_where_each_is_whole() -> None:
    source = f"""MODULE(shop)
#ifdef WIDE
int wide(void) {{ return 1; }}
#else
int narrow(void) {{ return 2; }}
#endif
int both(void) {{
    call(
#ifdef WIDE
        1
#else
        2
#endif
    );
#ifdef WIDE
    more();
#else
    less();
#endif
}}
{BROKEN_CLASS}"""

    chunks = parse_chunks("cpp", source)

    assert {"wide", "narrow", "both", "Broken"} <= set(chunks)
    assert chunks["both"].calls == ["call", "more", "less"]


def test_a_condition_around_most_of_a_file_is_left_as_it_is() -> None:
    source = "#ifndef A\n#error no\n#else\n" + "int f(void) { (\n" * 400 + "#endif\n"

    assert grammar_workarounds.resolve_conditions(source.encode()) == source.encode()


def test_macros_of_python_that_stand_alone_cost_no_function() -> None:
    source = """int first(void) {
    int found;
    Py_BEGIN_ALLOW_THREADS
#ifdef WIDE
    found = wide();
#else
    found = narrow();
#endif
    Py_END_ALLOW_THREADS
    if (found == 1) {
        return 2;
    }
    return found;
}
"""

    assert parse_chunks("c", source)["first"].calls == ["wide", "narrow"]


@pytest.mark.parametrize(
    "ease",
    [
        grammar_workarounds.rewrite_cpp,
        grammar_workarounds.rewrite_typescript,
        grammar_workarounds.rewrite_kotlin,
        grammar_workarounds.rewrite_swift,
        grammar_workarounds.rewrite_java,
    ],
)
@pytest.mark.parametrize("piece", [b"\n", b"AAA\n", b"in ", b"( ", b"AAA(", b"<", b"// a\n", b"@ ", b"'\\"])
def test_text_is_eased_in_a_time_that_grows_with_its_size(ease: Callable[[bytes], bytes], piece: bytes) -> None:
    """Check that the time is linear; in quadratic time this would take minutes."""
    text = piece * 60_000 + b"AAA"

    assert len(ease(text)) == len(text)
