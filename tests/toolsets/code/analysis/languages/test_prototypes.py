"""Functions that C and C++ declare without a body, as headers of libraries do."""

import pytest

from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.analysis.languages.engine import parse_declarations


def parse_chunks(source: str, lang: str = "c") -> dict[str, Chunk]:
    parsed_file = parse_declarations(lang, "shop.h", source.encode())
    assert parsed_file.problem == ""
    return {chunk.name: chunk for chunk in parsed_file.chunks}


@pytest.mark.parametrize("lang", ["c", "cpp"])
def test_a_prototype_at_the_top_says_all_that_its_head_says(lang: str) -> None:
    source = "/* Its price, in cents. */\nextern const char *price(struct order *of, int at);\n"

    chunk = parse_chunks(source, lang)["price"]

    assert (chunk.kind, chunk.start_line, chunk.end_line) == ("function", 1, 2)
    assert chunk.signature == "extern const char *price(struct order *of, int at)"
    assert chunk.params == ["of", "at"]
    assert chunk.return_type == "char"
    assert chunk.modifiers == ["extern", "prototype"]
    assert chunk.doc == "Its price, in cents."
    assert chunk.steps == []


def test_prototypes_of_cpp_are_found_in_namespaces_and_with_templates() -> None:
    source = (
        "namespace shop {\n"
        "template <class T> T make(T of, int count = 1);\n"
        "bool operator==(const Row& a, const Row& b) noexcept;\n"
        "auto size(const Row& of) -> std::size_t;\n"
        "}\n"
    )

    chunks = parse_chunks(source, "cpp")

    assert chunks["shop.make"].params == ["of", "count"]
    assert chunks["shop.make"].signature == "template <class T> T make(T of, int count = 1)"
    assert chunks["shop.operator=="].modifiers == ["noexcept", "prototype"]
    assert chunks["shop.size"].return_type == "std::size_t"


def test_the_macro_of_a_library_before_a_prototype_does_not_part_it_from_its_documentation() -> None:
    source = "/* Opens a shop. */\nSHOP_API int shop_open(shop *it);\nSHOP_API int shut(void);\n"

    chunks = parse_chunks(source)

    assert chunks["shop_open"].doc == "Opens a shop."
    assert chunks["shut"].doc == ""


def test_a_macro_before_a_function_does_not_part_it_from_its_documentation() -> None:
    source = "/* Opens. */\nSHOP_API int shop_open(shop *it) { return 1; }\nSHOP_API int x;\n"

    assert parse_chunks(source)["shop_open"].doc == "Opens."


def test_a_prototype_ahead_of_its_body_in_the_same_file_is_no_declaration_of_its_own() -> None:
    source = "static int later(int x);\nint first(void) { return later(1); }\n"

    parsed_file = parse_declarations("c", "shop.c", f"{source}static int later(int x) {{ return x; }}".encode())

    assert [chunk.name for chunk in parsed_file.chunks] == ["shop", "first", "later"]
    assert parsed_file.chunks[0].own[0] == (0, len("static int later(int x);\n"))
    assert parsed_file.chunks[2].modifiers == ["static"]


@pytest.mark.parametrize(
    "source",
    [
        "int (*hook)(int at);",
        "Lock held(lock);",
        "shop::Lock held(shop::kStart);",
        "class Shop { void open(int at); };",
        "void run() { int open(int at); Shop shop(); }",
        "int first(int a), second(int b);",
        "OPEN(shop);",
    ],
)
def test_what_only_looks_like_a_prototype_or_belongs_to_another_declaration_is_none(
    source: str,
) -> None:
    parsed_file = parse_declarations("cpp", "shop.h", source.encode())

    assert not [chunk.name for chunk in parsed_file.chunks if "prototype" in chunk.modifiers]
