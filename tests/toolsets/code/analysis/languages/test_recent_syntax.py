"""Syntax that the languages gained recently, and what their grammars do not support yet."""

import pytest

from cleats.toolsets.code.analysis.facts import TypeFact
from cleats.toolsets.code.analysis.languages.engine import load_language
from tests.toolsets.code.analysis.languages.test_tables_php_to_typescript import find_chunk, map_kinds, parse_source

CPP_MODULE_SOURCE = """module;
#include <vector>
export module shop.desk;
import std;
import :part;
export import <map>;

export namespace shop::inline v1 {
template <typename T> concept Sized = requires(T t) { t.size(); };
class [[nodiscard]] Desk { public:
  auto count() -> std::size_t { std::string s; return s.size(); }
};
}
export {
using Row = std::vector<int>;
int open(int id) { if consteval { return 1; } return id; }
}
export template <class T> T first(T x) { return x; }
"""


def test_a_module_of_cpp_costs_nothing_of_what_is_in_it() -> None:
    parsed_file = parse_source("cpp", CPP_MODULE_SOURCE)

    assert parsed_file.problem == ""
    assert parsed_file.imports == ["vector", "std", ":part", "map"]
    assert {
        declaration.name: declaration.kind for declaration in parsed_file.chunks if declaration.kind != "module"
    } == {
        "shop.v1": "namespace",
        "shop.v1.Sized": "type",
        "shop.v1.Desk": "class",
        "shop.v1.Desk.count": "method",
        "Row": "type",
        "open": "function",
        "first": "function",
    }


def test_what_is_eased_for_a_grammar_is_told_as_it_is_written() -> None:
    assert find_chunk("cpp", CPP_MODULE_SOURCE, "shop.v1").signature == "export namespace shop::inline v1"
    assert find_chunk("cpp", CPP_MODULE_SOURCE, "shop.v1.Desk").signature == "class [[nodiscard]] Desk"
    assert find_chunk("cpp", CPP_MODULE_SOURCE, "shop.v1.Desk").decorators == ["nodiscard"]
    count = find_chunk("cpp", CPP_MODULE_SOURCE, "shop.v1.Desk.count")
    assert (count.return_type, count.reads) == ("std::size_t", ["s"])
    assert TypeFact("return", "", "std::size_t", "annotation") in count.types


KOTLIN_GUARD_SOURCE = """package shop

context(logger: Logger<in Row>, Tx)
suspend fun pick(state: State): Int = when (state) {
    is Open if state.count > 3 -> state.count
    is Shut -> 0
    else if logger.on -> 1
    else -> 2
}

class Desk : Store by files, Base(3) {
    fun rows() = sequence { yield(1) }
    expect external fun close()
}

val List<Row>.second: Row get() = this[1]
"""


def test_a_guard_of_kotlin_costs_nothing_of_what_is_after_it() -> None:
    parsed_file = parse_source("kotlin", KOTLIN_GUARD_SOURCE)

    assert parsed_file.problem == ""
    assert {
        declaration.name: declaration.kind for declaration in parsed_file.chunks if declaration.kind != "module"
    } == {
        "pick": "function",
        "Desk": "class",
        "Desk.rows": "method",
        "Desk.close": "method",
        "List.second": "property",
    }
    pick = find_chunk("kotlin", KOTLIN_GUARD_SOURCE, "pick")
    assert pick.decorators == ["context(logger: Logger<in Row>, Tx)"]
    assert (pick.is_async, pick.branches) == (True, 3)
    assert {"state.count", "logger.on"} <= set(pick.reads)


def test_in_kotlin_bases_are_types_and_builders_of_sequences_are_generators() -> None:
    assert find_chunk("kotlin", KOTLIN_GUARD_SOURCE, "Desk").bases == ["Store", "Base"]
    assert find_chunk("kotlin", KOTLIN_GUARD_SOURCE, "Desk.rows").is_generator
    assert find_chunk("kotlin", KOTLIN_GUARD_SOURCE, "Desk.close").modifiers == ["expect", "external"]
    second = find_chunk("kotlin", KOTLIN_GUARD_SOURCE, "List.second")
    assert [(fact.where, fact.type) for fact in second.types] == [("return", "Row")]


def test_what_a_match_of_python_names_receives_what_is_matched() -> None:
    source = """def f(x):
    match x.get("a"):
        case {"k": [first, *rest], **other} if first > 3:
            run(first)
        case Point(x=0, y=yy) | [Color.RED, yy]:
            run(yy)
        case str() as s:
            run(s)
"""
    function = find_chunk("python", source, "f")

    assert function.writes == ["first", "rest", "other", "yy", "s"]
    assert function.reads == ["x", "first", "yy", "s"]
    assert {"Point", "Color.RED", "str"} <= set(function.uses)
    step = function.steps[0]
    assert (step.targets, step.calls[0].callee) == (function.writes, "x.get")


def test_a_type_that_python_names_is_a_chunk() -> None:
    source = "type Pair[T] = tuple[T, T]\ntype Name = str\n"

    assert map_kinds("python", source) == {"Pair": "type", "Name": "type"}


def test_java_without_a_class_has_functions_and_imports_modules() -> None:
    source = """import module java.base;
void main() { IO.println("hi"); }
"""
    parsed_file = parse_source("java", source)

    assert (parsed_file.imports, parsed_file.problem) == (["java.base"], "")
    assert map_kinds("java", source) == {"main": "function"}


def test_the_parts_of_a_record_receive_what_is_tested() -> None:
    source = """class A { int f(Object o) {
    if (o instanceof Point(int px, Box(var inner))) { run(px); }
    return switch (o) { case null, default -> 0; case Box(var b) -> b; };
} }
"""
    method = find_chunk("java", source, "A.f")

    assert method.writes == ["px", "inner", "b"]
    assert method.reads == ["o", "px", "b"]
    assert method.steps[0].targets == ["px", "inner"]
    assert method.steps[0].names == ["o"]


def test_a_product_in_an_argument_of_csharp_is_no_new_pointer() -> None:
    source = "class P { double Len(int x) { return Math.Sqrt(x * y, out int n); } }"
    method = find_chunk("csharp", source, "P.Len")

    assert method.reads == ["x", "y", "Math"]
    assert method.writes == ["n"]
    assert method.steps[0].calls[0].arguments[0].names == ["x", "y"]


def test_members_that_csharp_names_are_not_read() -> None:
    source = """class P { object F(Q q, R p) {
    if (q is { Length: > 3, Name: var n } s) { Use(s, n); }
    return new { Total = q.Sum, p = p with { Left = 3 } };
} }
"""
    method = find_chunk("csharp", source, "P.F")

    assert method.reads == ["q", "s", "n", "q.Sum", "p"]
    assert method.writes == ["n", "s"]


SWIFT_SOURCE = """@freestanding(expression)
public macro stringify<T>(_ value: T) -> String = #externalMacro(module: "M", type: "S")
enum Err: Error { case bad(Int), worse }
extension Array: @retroactive Foo { }
struct Desk {
    consuming func pay(_ p: repeat each U) async throws(Err) -> Int {
        async let a = one()
        let (x, y) = try await (a, two)
        return x + y
    }
}
"""


def test_a_macro_of_swift_is_a_chunk() -> None:
    macro = find_chunk("swift", SWIFT_SOURCE, "stringify")

    assert (macro.kind, macro.params, macro.return_type) == ("macro", ["value"], "String")
    assert macro.decorators == ["freestanding(expression)"]
    assert macro.reads == []


def test_swift_says_what_it_throws_awaits_and_extends() -> None:
    pay = find_chunk("swift", SWIFT_SOURCE, "Desk.pay")
    array = find_chunk("swift", SWIFT_SOURCE, "Array")

    assert (pay.throws, pay.awaits, pay.params) == (["Err"], ["a", "two"], ["p"])
    assert pay.modifiers == ["consuming", "throws"]
    assert [(fact.name, fact.type) for fact in find_chunk("swift", SWIFT_SOURCE, "Err").types] == [("bad", "(Int)")]
    assert (array.signature, array.decorators) == ("extension Array: @retroactive Foo", [])


def test_a_property_of_php_with_hooks_is_a_chunk() -> None:
    source = """<?php class Name {
    public string $full {
        get => $this->first . $this->last;
        set(string $v) { $this->first = $v; }
    }
    public string $plain { get; }
}
"""
    full = find_chunk("php", source, "Name.full")

    assert (full.kind, full.return_type, full.returns) == ("property", "string", True)
    assert (full.params, full.mutates) == (["$v"], ["$this.first"])
    assert map_kinds("php", source) == {"Name": "class", "Name.full": "property"}


RUBY_SOURCE = """module Loud
  refine String do
    def shout = upcase + "!"
  end
end
Missing = Class.new(StandardError)
Point = Struct.new(:x, :y) do
  def length = Math.sqrt(x)
end
"""


def test_a_refinement_of_ruby_extends_a_type() -> None:
    assert map_kinds("ruby", RUBY_SOURCE) == {
        "Loud": "namespace",
        "Loud.String": "impl",
        "Loud.String.shout": "method",
        "Missing": "class",
        "Point": "struct",
        "Point.length": "method",
    }
    assert find_chunk("ruby", RUBY_SOURCE, "Loud.String.shout").returns


def test_a_type_that_ruby_makes_has_a_base_or_fields() -> None:
    point = find_chunk("ruby", RUBY_SOURCE, "Point")

    assert find_chunk("ruby", RUBY_SOURCE, "Missing").bases == ["StandardError"]
    assert (point.params, point.signature) == (["x", "y"], "Point = Struct.new(:x, :y)")


def test_the_fields_of_a_tuple_of_rust_have_types() -> None:
    source = "pub struct Pair(pub u32, String);\nenum Err { Io(Error), None }\n"
    pair = find_chunk("rust", source, "Pair")

    assert pair.signature == "pub struct Pair(pub u32, String)"
    assert [(fact.name, fact.type) for fact in pair.types] == [("0", "u32"), ("1", "String")]
    assert [fact.type for fact in find_chunk("rust", source, "Err").types] == ["Error"]


RUST_MACRO_SOURCE = """cfg_rt! {
    /// Spawns { a task.
    #[track_caller]
    pub fn spawn(f: u8) -> u8 { let brace = '{'; let s = "}"; cfg_io! { run() }; f }

    cfg_net! {
        pub(crate) struct Net { a: u8 }
    }
}
impl Net {
    cfg_rt! {
        pub async fn go(&self) { self.a.await }
    }
}
lazy_static! { static ref X: u8 = 1; }
"""


def test_items_in_a_macro_of_rust_are_items_all_the_same() -> None:
    parsed_file = parse_source("rust", RUST_MACRO_SOURCE)

    assert [
        (declaration.kind, declaration.name) for declaration in parsed_file.chunks if declaration.kind != "module"
    ] == [
        ("function", "spawn"),
        ("struct", "Net"),
        ("impl", "Net"),
        ("method", "Net.go"),
    ]
    assert parsed_file.problem == ""
    spawn = find_chunk("rust", RUST_MACRO_SOURCE, "spawn")
    assert (spawn.doc, spawn.calls) == ("Spawns { a task.", ["run", "cfg_io!"])


def test_what_is_no_rust_in_a_macro_leaves_the_rest_as_it_is() -> None:
    source = "flags! {\n  pub struct A: u32 { const B = 1; }\n}\nfn f() {}\n"

    assert map_kinds("rust", source) == {"f": "function"}
    assert parse_source("rust", source).problem == ""


@pytest.mark.parametrize(
    ("lang", "source"),
    [
        ("rust", "a! {\n" + "/* " * 200_000),
        ("rust", "a! {" * 50_000),
        ("kotlin", "val x = \nis X" + " if" * 200_000),
        ("kotlin", "context(" + "<" * 200_000),
        ("cpp", "export " * 100_000),
    ],
    ids=["comments", "braces", "guards", "contexts", "exports"],
)
def test_easing_goes_over_a_text_once(lang: str, source: str) -> None:
    ease = load_language(lang).unwrap if lang == "rust" else load_language(lang).ease
    data = source.encode()

    assert len(ease(data)) == len(data)


@pytest.mark.parametrize("lang", ["typescript", "tsx"])
def test_what_typescript_says_of_members_and_casts_is_a_type(lang: str) -> None:
    source = """interface Row { id: number; at?: Date }
type Box = { item: Row }
function f(x: unknown) {
  const row = x as Row;
  const box = { item: row } satisfies Box;
  const fixed = [1] as const;
}
"""
    types = {
        declaration.name: [(fact.where, fact.name, fact.type) for fact in declaration.types]
        for declaration in parse_source(lang, source).chunks
    }

    assert types["Row"] == [("field", "id", "number"), ("field", "at", "Date")]
    assert types["Box"] == [("field", "item", "Row")]
    assert types["f"] == [
        ("param", "x", "unknown"),
        ("local", "row", "Row"),
        ("local", "box", "Box"),
    ]


def test_a_decorator_is_used_by_what_it_decorates_and_not_by_what_is_around() -> None:
    source = """export * as all from "./y";
class Desk { @Get("/x") async find() {} }
"""
    assert "Get" in find_chunk("typescript", source, "Desk.find").uses
    assert "Get" not in find_chunk("typescript", source, "Desk").uses
    assert parse_source("typescript", source).exports == ["all"]


def test_what_a_block_of_rust_is_for_is_named_without_how_it_is_held() -> None:
    source = """impl Read for &'a mut (dyn io::AsyncRead + Unpin) { fn go(&self) {} }
impl Foo for [u8] { }
impl<T> Foo for *const Box<T> { }
"""
    names = [declaration.name for declaration in parse_source("rust", source).chunks if declaration.kind == "impl"]

    assert names == ["AsyncRead", "[u8]", "Box"]


def test_a_call_in_csharp_is_named_without_what_it_is_generic_over() -> None:
    source = "class A { object F() { return new Shop.Desk<int, Row<X>>(1); } }"

    assert find_chunk("csharp", source, "A.F").calls == ["Shop.Desk"]


@pytest.mark.parametrize("lang", ["javascript", "typescript"])
@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("export default async function () { throw new TypeError(); }", "function"),
        ("export default async (req) => { throw new TypeError(); }", "function"),
        ("/** Says. */\nexport default class { async run() { throw new TypeError(); } }", "class"),
    ],
)
def test_what_is_exported_without_a_name_is_a_chunk(lang: str, source: str, kind: str) -> None:
    parsed_file = parse_source(lang, source)
    first = parsed_file.chunks[0]

    assert (first.kind, first.name, first.start, parsed_file.exports) == (kind, "default", 0, ["default"])
    assert parsed_file.chunks[-1].is_async
    assert parsed_file.chunks[-1].throws == ["TypeError"]


def test_a_value_that_is_exported_is_no_declaration() -> None:
    source = 'export default { a: 1 };\nexport { f as "name of f" };\n'

    assert map_kinds("javascript", source) == {}
    assert parse_source("javascript", source).exports == ["name of f"]


@pytest.mark.parametrize(
    ("lang", "source"),
    [
        ("kotlin", "fun f(y: Any) {\n val x = y as Row\n}\n"),
        ("swift", "func f(y: Any) {\n let x = y as! Row\n}\n"),
        ("rust", "fn f(y: u8) { let x = y as Row; }"),
        ("java", "class A { void f(Object y) { var x = (Row) y; } }"),
        ("csharp", "class A { void F(object y) { var x = y as Row; } }"),
        ("cpp", "void f(int y) { auto x = (Row) y; }"),
        ("go", "package a\nfunc f(y any) {\n x := y.(Row)\n}\n"),
        ("typescript", "function f(y: unknown) { const x = <Row>y; }"),
    ],
)
def test_a_cast_says_the_type_of_what_it_is_given_to(lang: str, source: str) -> None:
    types = [fact for declaration in parse_source(lang, source).chunks for fact in declaration.types]

    assert TypeFact("local", "x", "Row", "call") in types
