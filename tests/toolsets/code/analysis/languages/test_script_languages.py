"""Names, headers and newer types in Python, JavaScript and TypeScript, as packages write them."""

import pytest

from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.analysis.languages.engine import parse_declarations


def parse_chunks(lang: str, source: str) -> dict[str, Chunk]:
    parsed_file = parse_declarations(lang, "shop", source.encode())
    assert parsed_file.problem == ""
    return {chunk.name: chunk for chunk in parsed_file.chunks}


def test_a_member_of_what_a_call_gives_is_named_once() -> None:
    chunks = parse_chunks(
        "python",
        "async def f():\n    await a.get().objects.filter(1).delete()\n    return b[0].c.d().e\n",
    )

    assert chunks["f"].calls == ["a.get", "a.get().objects.filter", ANY_DELETE, "b[].c.d"]
    assert chunks["f"].awaits == [ANY_DELETE]


ANY_DELETE = "a.get().objects.filter().delete"


def test_a_comment_is_no_part_of_a_head_or_a_decorator() -> None:
    python = parse_chunks(
        "python",
        "@a.b  # why\n@c(\n    1,  # one\n)\ndef f(a,  # first\n      b='#'):  # last\n    pass\n",
    )
    ruby = parse_chunks("ruby", "module Shape # why\n  # Its area\n  def area(a, # one\n    b); end\nend\n")
    script = parse_chunks("typescript", "function f(/* first */ a: string, // last\n) /* none */ {}\n")

    assert python["f"].signature == "def f(a, b='#')"
    assert python["f"].decorators == ["a.b", "c( 1, )"]
    assert ruby["Shape"].signature == "module Shape"
    assert ruby["Shape.area"].doc == "Its area"
    assert script["f"].signature == "function f( a: string, )"


def test_keywords_of_a_class_of_python_are_no_bases() -> None:
    assert parse_chunks("python", "class A(B, *c, metaclass=D, **e): pass\n")["A"].bases == ["B", "*c"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("module.exports = class Foo extends Bar { m() {} };", {"Foo", "Foo.m"}),
        ("module.exports = function run(a) {};", {"run"}),
        ("module.exports = (a) => a;", {"module.exports"}),
        ("exports.run = function () { function inner() {} };", {"run", "run.inner"}),
        ("function Old() { this.open = function () {}; }", {"Old", "Old.open"}),
    ],
)
def test_a_function_that_is_given_away_is_known_by_its_own_name(source: str, names: set[str]) -> None:
    assert set(parse_chunks("javascript", source)) == names


def test_what_a_module_is_made_of_is_exported() -> None:
    parsed_file = parse_declarations("javascript", "shop", b"module.exports = class Foo {};\n")

    assert parsed_file.exports == ["Foo"]
    assert parsed_file.chunks[0].visibility == "public"


def test_a_parameter_that_is_taken_apart_names_what_its_parts_are_given_to() -> None:
    chunks = parse_chunks("javascript", "function f({to: at, size: {w = 3, h: high = 2}, ...rest}, b) {}")

    assert chunks["f"].params == ["at", "w", "high", "rest", "b"]


def test_a_sign_is_part_of_a_type() -> None:
    chunks = parse_chunks("typescript", "interface A { compare: (a: -1 | 1) => -1 | 0 }")

    assert chunks["A.compare"].return_type == "-1 | 0"
    assert [fact.type for fact in chunks["A.compare"].types] == ["-1 | 0", "-1 | 1"]


FLOW_SOURCE = """/**
 * @flow strict
 */
import typeof Desk from "desk";
export type Props = {| +title?: ?string, done: ?(string) => void, ... |};
opaque type Id<+T> = string;
class Page extends React.Component<Props> {
  open(at: ?Date, then: (string) => void): Promise<void> {}
}
"""


def test_types_of_flow_are_read() -> None:
    chunks = parse_chunks("javascript", FLOW_SOURCE)

    assert {"Props", "Id", "Page", "Page.open"} <= set(chunks)
    assert chunks["Page.open"].params == ["at", "then"]
    assert chunks["Page.open"].return_type == "Promise<void>"
    assert (chunks["Page"].start_line, chunks["Page"].end_line) == (7, 9)


def test_a_file_that_no_grammar_can_read_stays_what_it_is() -> None:
    parsed_file = parse_declarations("javascript", "shop", b"function f(a) {}\nlet let let = ;\n")

    assert parsed_file.problem == "syntax error near line 2"
    assert "f" in {chunk.name for chunk in parsed_file.chunks}


@pytest.mark.parametrize(
    "source",
    [
        "interface A<in T = never, out U extends B = C> { f(): void }",
        "interface A<\n  /** What it takes. */\n  in out T extends B,\n> { f(): void }",
        'export type * from "./a";\ninterface A { f(): void }',
        'declare const b: import("./c").D<E, F>;\ninterface A { f(): void }',
        "class B { g(using: string, then: C) { using.run() } }\ninterface A { f(): void }",
    ],
)
def test_types_that_are_newer_than_the_grammar_are_read(source: str) -> None:
    chunks = parse_chunks("typescript", source)

    assert chunks["A"].kind == "interface"
    assert "A.f" in chunks


def test_an_object_that_is_only_declared_has_methods() -> None:
    chunks = parse_chunks(
        "typescript",
        "declare namespace A {\n  const B: {\n    map<T>(rows: T[]): T;\n    size: number;\n  };\n"
        "}\ndeclare const c: { d(): void };\n",
    )

    assert {"A", "A.B", "A.B.map"} <= set(chunks)
    assert (chunks["A.B"].kind, chunks["A.B"].visibility) == ("constant", "public")
    assert chunks["A.B.map"].params == ["rows"]
    assert "c" not in chunks
