"""Names in unusual notation, as real packages write them."""

import pytest

from cleats.toolsets.code.analysis.languages.engine import parse_declarations


def map_kinds(lang: str, source: str) -> dict[str, str]:
    parsed_file = parse_declarations(lang, "shop", source.encode())
    assert parsed_file.problem == ""
    return {chunk.name: chunk.kind for chunk in parsed_file.chunks if chunk.kind != "module"}


@pytest.mark.parametrize(
    ("type_name", "name"),
    [
        ("[T; N]", "[T; N]"),
        ("&'a mut [T; N]", "[T; N]"),
        ("*const [T]", "[T]"),
        ("(A, B)", "(A, B)"),
        ("()", "()"),
        ("&'a mut (dyn Read + Send)", "Read"),
        ("Box<[u8]>", "Box"),
    ],
)
def test_a_type_of_rust_without_a_name_is_named_as_it_is_written(type_name: str, name: str) -> None:
    kinds = map_kinds("rust", f"impl<T, const N: usize> Sum for {type_name} {{ fn sum(&self) {{}} }}")

    assert kinds == {name: "impl", f"{name}.sum": "method"}


def test_an_annotation_of_kotlin_needs_no_body() -> None:
    kinds = map_kinds(
        "kotlin",
        "@Target(B.C)\nannotation class Audited\n\nannotation class D(val e: F)",
    )

    assert kinds == {"Audited": "class", "D": "class"}


def test_a_path_of_ruby_is_named_as_if_each_part_were_around_the_next() -> None:
    kinds = map_kinds("ruby", "class Shop::Parts::Desk < Base\n  def open; end\nend")
    nested = map_kinds(
        "ruby",
        "module Shop\n module Parts\n  class Desk < Base\n   def open; end\n  end\n end\nend",
    )

    assert kinds == {"Shop.Parts.Desk": "class", "Shop.Parts.Desk.open": "method"}
    assert kinds.items() <= nested.items()
    assert map_kinds("ruby", "module ::Shop\nend") == {"Shop": "namespace"}


def test_a_receiver_of_go_may_stand_apart_from_what_it_is_generic_over() -> None:
    assert map_kinds("go", "package p\nfunc (b *Box [K]) Put(k K) {}") == {"Box.Put": "method"}


def test_words_of_swift_that_are_newer_than_the_grammar_are_read() -> None:
    parsed_file = parse_declarations(
        "swift",
        "shop",
        b"func run<R>(@_implicitSelfCapture _ body: sending @escaping () async -> sending R) {}\n"
        b"func rows() -> [Kind] {\n  nonisolated(unsafe) let a = b\n  return [~Row.self]\n}\n",
    )

    assert parsed_file.problem == ""
    assert [chunk.name for chunk in parsed_file.chunks] == ["run", "rows"]
    assert parsed_file.chunks[0].params == ["body"]
