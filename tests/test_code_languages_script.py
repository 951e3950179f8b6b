"""Names, heads and newer types in Python, JavaScript and TypeScript, as packages write them."""

import pytest

from cleats.toolsets.code.facts import Chunk
from cleats.toolsets.code.languages.engine import declarations


def named(lang: str, source: str) -> dict[str, Chunk]:
    found = declarations(lang, "shop", source.encode())
    assert found.problem == ""
    return {chunk.name: chunk for chunk in found.chunks}


def test_a_member_of_what_a_call_gives_is_named_once() -> None:
    found = named(
        "python",
        "async def f():\n    await a.get().objects.filter(1).delete()\n    return b[0].c.d().e\n",
    )

    assert found["f"].calls == ["a.get", "a.get().objects.filter", ANY_DELETE, "b[].c.d"]
    assert found["f"].awaits == [ANY_DELETE]


ANY_DELETE = "a.get().objects.filter().delete"


def test_a_comment_is_no_part_of_a_head_or_a_decorator() -> None:
    python = named(
        "python",
        "@a.b  # why\n@c(\n    1,  # one\n)\ndef f(a,  # first\n      b='#'):  # last\n    pass\n",
    )
    ruby = named(
        "ruby", "module Shape # why\n  # Its area\n  def area(a, # one\n    b); end\nend\n"
    )
    script = named("typescript", "function f(/* first */ a: string, // last\n) /* none */ {}\n")

    assert python["f"].signature == "def f(a, b='#')"
    assert python["f"].decorators == ["a.b", "c( 1, )"]
    assert ruby["Shape"].signature == "module Shape"
    assert ruby["Shape.area"].doc == "Its area"
    assert script["f"].signature == "function f( a: string, )"


def test_keywords_of_a_class_of_python_are_no_bases() -> None:
    assert named("python", "class A(B, *c, metaclass=D, **e): pass\n")["A"].bases == ["B", "*c"]


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
def test_a_function_that_is_given_away_is_known_by_its_own_name(
    source: str, names: set[str]
) -> None:
    assert set(named("javascript", source)) == names


def test_what_a_module_is_made_of_is_exported() -> None:
    found = declarations("javascript", "shop", b"module.exports = class Foo {};\n")

    assert found.exports == ["Foo"]
    assert found.chunks[0].visibility == "public"


def test_a_parameter_that_is_taken_apart_names_what_its_parts_are_given_to() -> None:
    found = named("javascript", "function f({to: at, size: {w = 3, h: high = 2}, ...rest}, b) {}")

    assert found["f"].params == ["at", "w", "high", "rest", "b"]


def test_a_sign_is_part_of_a_type() -> None:
    found = named("typescript", "interface A { compare: (a: -1 | 1) => -1 | 0 }")

    assert found["A.compare"].return_type == "-1 | 0"
    assert [each.type for each in found["A.compare"].types] == ["-1 | 0", "-1 | 1"]


TYPED = """/**
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
    found = named("javascript", TYPED)

    assert {"Props", "Id", "Page", "Page.open"} <= set(found)
    assert found["Page.open"].params == ["at", "then"]
    assert found["Page.open"].return_type == "Promise<void>"
    assert (found["Page"].start_line, found["Page"].end_line) == (7, 9)


def test_a_file_that_no_grammar_can_read_stays_what_it_is() -> None:
    found = declarations("javascript", "shop", b"function f(a) {}\nlet let let = ;\n")

    assert found.problem == "syntax error near line 2"
    assert "f" in {chunk.name for chunk in found.chunks}


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
    found = named("typescript", source)

    assert found["A"].kind == "interface"
    assert "A.f" in found


def test_an_object_that_is_only_declared_has_methods() -> None:
    found = named(
        "typescript",
        "declare namespace A {\n  const B: {\n    map<T>(rows: T[]): T;\n    size: number;\n  };\n"
        "}\ndeclare const c: { d(): void };\n",
    )

    assert {"A", "A.B", "A.B.map"} <= set(found)
    assert (found["A.B"].kind, found["A.B"].visibility) == ("constant", "public")
    assert found["A.B.map"].params == ["rows"]
    assert "c" not in found
