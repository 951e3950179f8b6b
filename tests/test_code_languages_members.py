"""Methods that have no body: those of interfaces, protocols, traits and abstract classes."""

import pytest

from cleats.toolsets.code.facts import Chunk
from cleats.toolsets.code.languages.engine import Parsed, declarations

SHAPES = {
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


def read(lang: str, source: str) -> Parsed:
    found = declarations(lang, "shop", source.encode())
    assert found.problem == ""
    return found


def named(lang: str, source: str) -> dict[str, Chunk]:
    return {chunk.name: chunk for chunk in read(lang, source).chunks}


@pytest.mark.parametrize("lang", SHAPES)
def test_a_method_without_a_body_is_found_like_any_other(lang: str) -> None:
    found = named(lang, SHAPES[lang])
    shape, area = found["Shape"], found["Shape.area"]

    assert area.kind == "method"
    assert area.doc == "Its area."
    assert "area" in area.signature
    assert "unit" in area.signature
    assert [name.lstrip("$") for name in area.params if name != "self"] == ["scale", "unit"]
    assert {each.name.lstrip("$") for each in area.types} == {"", "scale", "unit"}
    assert area.return_type in ("int", "Int", "i32", "number")
    assert area.returns
    assert area.visibility in ("public", "package" if lang == "go" else "public")
    assert shape.start < area.start < area.end <= shape.end
    assert (area.start, area.end) not in shape.own
    assert all(end <= area.start or start >= area.end for start, end in shape.own)


def test_what_an_interface_of_go_asks_for_is_its_methods_and_its_bases() -> None:
    found = named(
        "go",
        "package p\ntype A interface {\n\tB\n\tRead(p []byte) (n int, err error)\n\tclose()\n}\n"
        "type C = interface{ D(int, string) }\nvar e interface{ F() }\n",
    )

    assert found["A"].bases == ["B"]
    assert found["A.Read"].signature == "Read(p []byte) (n int, err error)"
    assert found["A.Read"].return_type == "(n int, err error)"
    assert (found["A.Read"].visibility, found["A.close"].visibility) == ("public", "package")
    assert (found["C"].kind, found["C"].signature) == ("interface", "type C = interface")
    assert (found["C.D"].kind, found["C.D"].params) == ("method", [])
    assert not any(name.endswith("F") for name in found)


def test_the_members_of_an_interface_of_typescript_that_can_be_called_are_its_methods() -> None:
    found = named(
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

    kinds = {name.removeprefix("Desk."): chunk.kind for name, chunk in found.items()}
    assert kinds == {
        "Desk": "interface",
        "open": "method",
        "onClose": "method",
        "new": "constructor",
        "size": "property",
        "two words": "method",
        "[Symbol.iterator]": "method",
    }
    assert [(each.name, each.type) for each in found["Desk"].types] == [("rows", "T[]")]
    assert found["Desk.onClose"].signature == "readonly onClose?: (reason: string) => void"
    assert found["Desk.onClose"].params == ["reason"]
    assert found["Desk.open"].return_type == "Promise<void>"
    assert found["Desk.new"].return_type == "Desk<T>"
    assert {chunk.visibility for chunk in found.values()} == {"public", "internal"}


def test_a_type_made_of_objects_has_the_methods_of_all_of_them() -> None:
    found = named(
        "typescript",
        """type A = Base & { f(x: Row): void } | ({ g(): void });
type B = { inner: { deep(): Row; rows: Row[] }; get size(): number };
type C = (x: { h(): void }) => void;
""",
    )

    assert set(found) == {"A", "A.f", "A.g", "B", "B.inner.deep", "B.size", "C"}
    assert "Base" in found["A"].uses
    assert found["A.f"].uses == ["Row"]
    assert [each.name for each in found["B"].types] == ["inner", "inner.rows"]
    assert (found["B.size"].kind, found["B.size"].visibility) == ("property", "public")


def test_a_union_may_be_of_very_many_types() -> None:
    members = " | ".join(f'"{number}"' for number in range(3000))

    found = named("typescript", f"type A = {members} | {{ f(): void }};\n")

    assert set(found) == {"A", "A.f"}


def test_a_comment_in_an_interface_is_about_what_is_below_it() -> None:
    found = read(
        "typescript",
        """interface Desk {
  /** How many orders it holds. */
  size: number;
  /** Takes an order. */
  take(): void; // at once
}
""",
    )

    assert [(each.text, each.kind, each.owner) for each in found.comments] == [
        ("How many orders it holds.", "comment", "Desk"),
        ("Takes an order.", "docstring", "Desk.take"),
        ("at once", "comment", "Desk"),
    ]


def test_what_a_class_of_typescript_declares_without_a_body_is_a_method_too() -> None:
    found = read(
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

    assert [(each.name, each.kind, each.visibility) for each in found] == [
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
    found = named(
        "typescript",
        """export declare const f: (a: number, b?: string) => Promise<Row>;
declare const rows: Row[];
let later: (a: number) => void;
""",
    )

    assert set(found) == {"shop", "f"}
    assert (found["f"].kind, found["f"].visibility) == ("function", "public")
    assert found["f"].params == ["a", "b"]
    assert found["f"].return_type == "Promise<Row>"
    assert found["f"].signature.startswith("export declare const f: (a: number")


def test_everything_in_a_namespace_that_is_only_declared_is_public() -> None:
    declared = "{ function f(): void; namespace B { class C {} } }"

    ambient = named("typescript", f"declare namespace A {declared}")
    real = named("typescript", "namespace A { function f() {} export class B {} }")

    assert {ambient[name].visibility for name in ("A.f", "A.B", "A.B.C")} == {"public"}
    assert (real["A.f"].visibility, real["A.B"].visibility) == ("internal", "public")


def test_what_an_annotation_of_java_may_be_given_is_a_method() -> None:
    found = named(
        "java",
        "@interface Audited {\n  /** How far. */\n  int level() default 1;\n  String[] value();\n}",
    )

    assert set(found) == {"Audited", "Audited.level", "Audited.value"}
    assert found["Audited.level"].doc == "How far."
    assert found["Audited.level"].signature == "int level() default 1"
    assert found["Audited.value"].return_type == "String[]"
    assert found["Audited.value"].visibility == "public"


def test_only_a_pure_virtual_method_of_cpp_is_all_there_is_of_it() -> None:
    found = named(
        "cpp",
        "class A {\n public:\n  int f(int a);\n  int n = 0;\n  virtual ~A() = default;\n"
        "  virtual const B &get(int a) const noexcept = 0;\n};\n",
    )

    assert set(found) == {"A", "A.get"}
    assert found["A.get"].modifiers == ["virtual", "const", "noexcept", "abstract"]
    assert found["A.get"].signature == "virtual const B &get(int a) const noexcept"
    assert (found["A.get"].visibility, found["A.get"].params) == ("public", ["a"])
