"""Methods that have no body: those of interfaces, protocols, traits and abstract classes."""

import pytest

from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.analysis.languages.engine import ParsedFile, parse_declarations

SHAPE_SOURCES = {
    "java": """
interface Shape {
  /** Its area. */
  int area(double scale, String unit);
}
""",
    "kotlin": """
interface Shape {
  /** Its area. */
  fun area(scale: Double, unit: String): Int
}
""",
    "csharp": """
interface Shape {
  /// Its area.
  int area(double scale, string unit);
}
""",
    "php": """<?php
interface Shape {
  /** Its area. */
  public function area(float $scale, string $unit): int;
}
""",
    "swift": """
public protocol Shape {
  /// Its area.
  func area(scale: Double, unit: String) -> Int
}
""",
    "rust": """
pub trait Shape {
  /// Its area.
  fn area(&self, scale: f64, unit: &str) -> i32;
}
""",
    "go": """package p
type Shape interface {
	// Its area.
	area(scale float64, unit string) int
}
""",
    "python": """
class Shape(Protocol):
    def area(self, scale: float, unit: str) -> int:
        "Its area."
""",
    "typescript": """
interface Shape {
  /** Its area. */
  area(scale: number, unit: string): number;
}
""",
    "tsx": """
type Shape = {
  /** Its area. */
  area: (scale: number, unit: string) => number;
};
""",
    "cpp": """
struct Shape {
  /// Its area.
  virtual int area(double scale, const char *unit) const = 0;
};
""",
}


def parse_source(lang: str, source: str) -> ParsedFile:
    parsed_file = parse_declarations(lang, "shop", source.encode())
    assert parsed_file.problem == ""
    return parsed_file


def parse_chunks(lang: str, source: str) -> dict[str, Chunk]:
    return {chunk.name: chunk for chunk in parse_source(lang, source).chunks}


@pytest.mark.parametrize("lang", SHAPE_SOURCES)
def test_a_method_without_a_body_is_found_like_any_other(lang: str) -> None:
    chunks = parse_chunks(lang, SHAPE_SOURCES[lang])
    shape, area = chunks["Shape"], chunks["Shape.area"]

    assert area.kind == "method"
    assert area.doc == "Its area."
    assert "area" in area.signature
    assert "unit" in area.signature
    assert [name.lstrip("$") for name in area.params if name != "self"] == ["scale", "unit"]
    assert {fact.name.lstrip("$") for fact in area.types} == {"", "scale", "unit"}
    assert area.return_type in ("int", "Int", "i32", "number")
    assert area.returns
    assert area.visibility in ("public", "package" if lang == "go" else "public")
    assert shape.start < area.start < area.end <= shape.end
    assert (area.start, area.end) not in shape.own
    assert all(end <= area.start or start >= area.end for start, end in shape.own)


def test_what_an_interface_of_go_asks_for_is_its_methods_and_its_bases() -> None:
    chunks = parse_chunks(
        "go",
        "package p\ntype A interface {\n\tB\n\tRead(p []byte) (n int, err error)\n\tclose()\n}\n"
        "type C = interface{ D(int, string) }\nvar e interface{ F() }\n",
    )

    assert chunks["A"].bases == ["B"]
    assert chunks["A.Read"].signature == "Read(p []byte) (n int, err error)"
    assert chunks["A.Read"].return_type == "(n int, err error)"
    assert (chunks["A.Read"].visibility, chunks["A.close"].visibility) == ("public", "package")
    assert (chunks["C"].kind, chunks["C"].signature) == ("interface", "type C = interface")
    assert (chunks["C.D"].kind, chunks["C.D"].params) == ("method", [])
    assert not any(name.endswith("F") for name in chunks)


def test_the_members_of_an_interface_of_typescript_that_can_be_called_are_its_methods() -> None:
    chunks = parse_chunks(
        "typescript",
        """interface Desk<T> extends Base {
  open?(at: Date): Promise<void>;
  readonly onClose?: (reason: string) => void;
  rows: T[];
  new (rows: T[]): Desk<T>;
  get size(): number;
  "two words"(): void;
  [Symbol.iterator](): Iterator<T>;
  [key: string]: unknown;
  (key: string): T;
}
""",
    )

    kinds = {name.removeprefix("Desk."): chunk.kind for name, chunk in chunks.items()}
    assert kinds == {
        "Desk": "interface",
        "open": "method",
        "onClose": "method",
        "new": "constructor",
        "size": "property",
        "two words": "method",
        "[Symbol.iterator]": "method",
    }
    assert [(fact.name, fact.type) for fact in chunks["Desk"].types] == [("rows", "T[]")]
    assert chunks["Desk.onClose"].signature == "readonly onClose?: (reason: string) => void"
    assert chunks["Desk.onClose"].params == ["reason"]
    assert chunks["Desk.open"].return_type == "Promise<void>"
    assert chunks["Desk.new"].return_type == "Desk<T>"
    assert {chunk.visibility for chunk in chunks.values()} == {"public", "internal"}


def test_a_type_made_of_objects_has_the_methods_of_all_of_them() -> None:
    chunks = parse_chunks(
        "typescript",
        """type A = Base & { f(x: Row): void } | ({ g(): void });
type B = { inner: { deep(): Row; rows: Row[] }; get size(): number };
type C = (x: { h(): void }) => void;
""",
    )

    assert set(chunks) == {"A", "A.f", "A.g", "B", "B.inner.deep", "B.size", "C"}
    assert "Base" in chunks["A"].uses
    assert chunks["A.f"].uses == ["Row"]
    assert [fact.name for fact in chunks["B"].types] == ["inner", "inner.rows"]
    assert (chunks["B.size"].kind, chunks["B.size"].visibility) == ("property", "public")


def test_a_union_may_be_of_very_many_types() -> None:
    members = " | ".join(f'"{number}"' for number in range(3000))

    chunks = parse_chunks("typescript", f"type A = {members} | {{ f(): void }};\n")

    assert set(chunks) == {"A", "A.f"}


def test_a_comment_in_an_interface_is_about_what_is_below_it() -> None:
    parsed_file = parse_source(
        "typescript",
        """interface Desk {
  /** How many orders it holds. */
  size: number;
  /** Takes an order. */
  take(): void; // at once
}
""",
    )

    assert [(comment.text, comment.kind, comment.owner) for comment in parsed_file.comments] == [
        ("How many orders it holds.", "comment", "Desk"),
        ("Takes an order.", "docstring", "Desk.take"),
        ("at once", "comment", "Desk"),
    ]


def test_what_a_class_of_typescript_declares_without_a_body_is_a_method_too() -> None:
    chunks = parse_source(
        "typescript",
        """declare class A {
  constructor(x: number);
  static make(): A;
  private hidden(): void;
  rows: string[];
}
abstract class B {
  protected abstract f(a: number): string;
  g(a: string): void;
  g(a: any) {}
}
""",
    ).chunks

    assert [(chunk.name, chunk.kind, chunk.visibility) for chunk in chunks] == [
        ("A", "class", "internal"),
        ("A.constructor", "constructor", "public"),
        ("A.make", "method", "public"),
        ("A.hidden", "method", "private"),
        ("B", "class", "internal"),
        ("B.f", "method", "protected"),
        ("B.g", "method", "public"),
        ("B.g", "method", "public"),
    ]


def test_a_constant_that_is_declared_as_a_function_is_one() -> None:
    chunks = parse_chunks(
        "typescript",
        """export declare const f: (a: number, b?: string) => Promise<Row>;
declare const rows: Row[];
let later: (a: number) => void;
""",
    )

    assert set(chunks) == {"shop", "f"}
    assert (chunks["f"].kind, chunks["f"].visibility) == ("function", "public")
    assert chunks["f"].params == ["a", "b"]
    assert chunks["f"].return_type == "Promise<Row>"
    assert chunks["f"].signature.startswith("export declare const f: (a: number")


def test_everything_in_a_namespace_that_is_only_declared_is_public() -> None:
    declared = "{ function f(): void; namespace B { class C {} } }"

    ambient = parse_chunks("typescript", f"declare namespace A {declared}")
    real = parse_chunks("typescript", "namespace A { function f() {} export class B {} }")

    assert {ambient[name].visibility for name in ("A.f", "A.B", "A.B.C")} == {"public"}
    assert (real["A.f"].visibility, real["A.B"].visibility) == ("internal", "public")


def test_what_an_annotation_of_java_may_be_given_is_a_method() -> None:
    chunks = parse_chunks(
        "java",
        "@interface Audited {\n  /** How far. */\n  int level() default 1;\n  String[] value();\n}",
    )

    assert set(chunks) == {"Audited", "Audited.level", "Audited.value"}
    assert chunks["Audited.level"].doc == "How far."
    assert chunks["Audited.level"].signature == "int level() default 1"
    assert chunks["Audited.value"].return_type == "String[]"
    assert chunks["Audited.value"].visibility == "public"


def test_only_a_pure_virtual_method_of_cpp_is_all_there_is_of_it() -> None:
    chunks = parse_chunks(
        "cpp",
        "class A {\n public:\n  int f(int a);\n  int n = 0;\n  virtual ~A() = default;\n"
        "  virtual const B &get(int a) const noexcept = 0;\n};\n",
    )

    assert set(chunks) == {"A", "A.get"}
    assert chunks["A.get"].modifiers == ["virtual", "const", "noexcept", "abstract"]
    assert chunks["A.get"].signature == "virtual const B &get(int a) const noexcept"
    assert (chunks["A.get"].visibility, chunks["A.get"].params) == ("public", ["a"])
