"""Headers of declarations in Go, Java, PHP, Rust and C#: the peculiarities of each language."""

import pytest

from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.analysis.languages.engine import ParsedFile, parse_declarations


def parse_source(lang: str, source: str) -> ParsedFile:
    parsed_file = parse_declarations(lang, "shop", f"{source}\n".encode())
    assert parsed_file.problem == ""
    return parsed_file


def find_chunk(lang: str, source: str, name: str) -> Chunk:
    (chunk,) = [chunk for chunk in parse_source(lang, source).chunks if chunk.name == name]
    return chunk


@pytest.mark.parametrize(
    ("lang", "source", "name", "kind", "visibility"),
    [
        ("go", "package p\nfunc (s *Box[K]) Put(k K) {}", "Box.Put", "method", "public"),
        ("go", "package p\nfunc (box) get() {}", "box.get", "method", "package"),
        ("go", "package p\ntype Box[K any] struct { a K }", "Box", "struct", "public"),
        ("go", "package p\ntype shape interface { area() int }", "shape", "interface", "package"),
        ("go", "package p\ntype ID = string", "ID", "type", "public"),
        ("java", "record P(int x) { P { check(x); } }", "P.P", "constructor", "package"),
        ("java", "@interface Audited { int level(); }", "Audited", "interface", "package"),
        ("java", "interface S { int area(); }", "S.area", "method", "public"),
        ("java", "enum E { A(1); E(int n) {} }", "E.E", "constructor", "private"),
        ("java", "public class A { protected class B {} }", "A.B", "class", "protected"),
        ("php", "<?php trait T { function a() {} }", "T.a", "method", "public"),
        ("php", "<?php class A { function __construct() {} }", "A.__construct", "constructor", ""),
        ("php", "<?php enum Suit: string { case A = 'a'; }", "Suit", "enum", "public"),
        ("rust", "impl<T> Box<T> { pub fn new() -> Self { x() } }", "Box.new", "constructor", ""),
        (
            "rust",
            "impl fmt::Display for a::Box { fn fmt(&self) {} }",
            "Box.fmt",
            "method",
            "public",
        ),
        ("rust", "impl Box { fn open(&self) {} }", "Box.open", "method", "private"),
        ("rust", "pub(crate) enum E { A }", "E", "enum", "internal"),
        ("rust", "macro_rules! sq { ($x:expr) => { $x }; }", "sq", "macro", "private"),
        ("rust", "mod inner { fn f() {} }", "inner.f", "function", "private"),
        ("csharp", "public record P(int X);", "P", "struct", "public"),
        ("csharp", "class A { int this[int i] => a[i]; }", "A.this[]", "property", "private"),
        ("csharp", "class A { ~A() {} }", "A.~A", "method", "private"),
        ("csharp", "interface I { void F(); }", "I.F", "method", "public"),
        ("csharp", "delegate int Handler(object o);", "Handler", "type", "internal"),
        ("csharp", "namespace S { enum E { A } }", "S.E", "enum", "internal"),
        ("csharp", "namespace S;\nclass A { }", "S.A", "class", "internal"),
    ],
)
def test_a_declaration_has_the_kind_and_visibility_of_its_place(
    lang: str, source: str, name: str, kind: str, visibility: str
) -> None:
    chunk = find_chunk(lang, source, name)

    assert (chunk.kind, chunk.visibility) == (kind, visibility or "public")


@pytest.mark.parametrize(
    ("lang", "source", "name", "bases"),
    [
        ("go", "package p\ntype A struct { *B; io.Reader; c int }", "A", ["B", "io.Reader"]),
        (
            "go",
            "package p\ntype A interface { fmt.Stringer; ~int | ~string }",
            "A",
            ["fmt.Stringer"],
        ),
        ("java", "class A<T> extends B<T> implements C, D<T> {}", "A", ["B<T>", "C", "D<T>"]),
        (
            "php",
            "<?php class A extends \\B\\C implements D { use E, F; }",
            "A",
            ["\\B\\C", "D", "E", "F"],
        ),
        ("rust", "trait A: B + C<D> {}", "A", ["B", "C<D>"]),
        ("rust", "impl From<B> for A<C> {}", "A", ["From<B>"]),
        ("csharp", "record A(int X) : B<int>(X), C.D;", "A", ["B<int>", "C.D"]),
    ],
)
def test_bases_are_what_a_type_extends_implements_embeds_or_mixes_in(
    lang: str, source: str, name: str, bases: list[str]
) -> None:
    assert find_chunk(lang, source, name).bases == bases


@pytest.mark.parametrize(
    ("lang", "source", "name", "signature"),
    [
        (
            "go",
            "package p\nfunc Map[T, U any](xs []T, f func(T) U) (out []U, err error) { return }",
            "Map",
            "func Map[T, U any](xs []T, f func(T) U) (out []U, err error)",
        ),
        (
            "java",
            'class A { @Get("x") @Auth public <R> R f(List<? extends R> a) throws E { } }',
            "A.f",
            "public <R> R f(List<? extends R> a) throws E",
        ),
        (
            "php",
            "<?php class A { #[Get('/x'), Auth] public static function f(?int &$a = 3): ?self {} }",
            "A.f",
            "public static function f(?int &$a = 3): ?self",
        ),
        (
            "rust",
            "#[get]\npub async fn f<'a, T>(x: &'a T) -> impl Iter<Item = T> where T: Copy { x }",
            "f",
            "pub async fn f<'a, T>(x: &'a T) -> impl Iter<Item = T> where T: Copy",
        ),
        (
            "csharp",
            'class A { [Get("x")] public async Task<R> F<R>(ref int a) where R : new() { } }',
            "A.F",
            "public async Task<R> F<R>(ref int a) where R : new()",
        ),
    ],
)
def test_a_signature_is_the_head_without_decorators_and_body(lang: str, source: str, name: str, signature: str) -> None:
    assert find_chunk(lang, source, name).signature == signature


@pytest.mark.parametrize(
    ("lang", "source", "name", "decorators"),
    [
        ("java", "@A @B(c = 1) class X {}", "X", ["A", "B(c = 1)"]),
        ("php", "<?php #[A, B(1)]\n#[C]\nclass X {}", "X", ["A", "B(1)", "C"]),
        (
            "rust",
            "#[derive(Debug, Clone)]\n#[serde(x)]\nstruct X;",
            "X",
            ["derive(Debug, Clone)", "serde(x)"],
        ),
        ("csharp", "[A, B(1)]\n[C]\nclass X {}", "X", ["A", "B(1)", "C"]),
    ],
)
def test_annotations_and_attributes_are_decorators_without_their_marks(
    lang: str, source: str, name: str, decorators: list[str]
) -> None:
    assert find_chunk(lang, source, name).decorators == decorators


@pytest.mark.parametrize(
    ("lang", "source", "name", "params"),
    [
        (
            "go",
            "package p\nfunc (r R) f(a, b int, _ string, rest ...T) {}",
            "R.f",
            ["a", "b", "_", "rest"],
        ),
        ("java", "class A { void f(final int a, String... rest) {} }", "A.f", ["a", "rest"]),
        (
            "php",
            "<?php class A { function f(private int $a, &$b, ...$c) {} }",
            "A.f",
            ["$a", "$b", "$c"],
        ),
        ("rust", "fn f(&self, (a, b): (u8, u8), mut c: T, _: u8) {}", "f", ["a", "b", "c"]),
        (
            "csharp",
            "class A { void F(this int a, out B b, params int[] c) {} }",
            "A.F",
            ["a", "b", "c"],
        ),
    ],
)
def test_every_name_in_a_parameter_list_is_a_parameter(lang: str, source: str, name: str, params: list[str]) -> None:
    assert find_chunk(lang, source, name).params == params


@pytest.mark.parametrize(
    ("lang", "source", "imports"),
    [
        ("go", 'package p\nimport (\n. "math"\n_ "embed"\ns "a/b"\n)', ["math", "embed", "a/b"]),
        (
            "java",
            "import java.util.*;\nimport static java.lang.Math.max;",
            ["java.util.*", "java.lang.Math.max"],
        ),
        (
            "php",
            "<?php use A\\{B, C as D}; use function \\E\\f; require __DIR__ . '/g.php';",
            ["A\\B", "A\\C", "E\\f", "./g.php"],
        ),
        (
            "rust",
            "use a::{b::{C, d::E as F}, g::{self, H}, i::*};\nuse crate::j;\nmod k;",
            ["a::b::C", "a::b::d::E", "a::g", "a::g::H", "a::i::*", "crate::j", "k"],
        ),
        (
            "csharp",
            "using A.B; using static A.C; using D = A.E; global using F;",
            ["A.B", "A.C", "A.E", "F"],
        ),
    ],
)
def test_imports_are_full_paths(lang: str, source: str, imports: list[str]) -> None:
    assert parse_source(lang, source).imports == imports
