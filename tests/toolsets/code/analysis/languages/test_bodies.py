"""Bodies in Go, Java, PHP, Rust and C#: calls, values that flow, branches, names in odd places."""

import pytest

from cleats.toolsets.code.analysis.facts import Chunk, DataFlowStep
from cleats.toolsets.code.analysis.languages.engine import parse_declarations
from tests.support.paths import REPOSITORY_ROOT
from tests.toolsets.code.analysis.languages.test_languages import check_laws
from tests.toolsets.code.analysis.languages.test_tables_c_to_kotlin import find_chunk, parse_source

PACKAGE_FOLDER = REPOSITORY_ROOT / "src" / "cleats"


def parse_body(lang: str, statements: str) -> Chunk:
    """Return the chunk of a function that holds these statements."""
    frames = {
        "go": "package p\nfunc f() {\n%s\n}\n",
        "java": "class C { void f() {\n%s\n} }\n",
        "php": "<?php\nfunction f() {\n%s\n}\n",
        "rust": "fn f() {\n%s\n}\n",
        "csharp": "class C { void F() {\n%s\n} }\n",
    }
    parsed_file = parse_source(lang, frames[lang] % statements)
    (chunk,) = [candidate for candidate in parsed_file.chunks if candidate.name.rpartition(".")[2].lower() == "f"]
    return chunk


def find_step(chunk: Chunk, target: str) -> DataFlowStep:
    (step,) = [step for step in chunk.steps if target in step.targets]
    return step


def map_types(chunk: Chunk) -> dict[str, str]:
    return {fact.name: fact.type for fact in chunk.types if fact.where != "return"}


@pytest.mark.parametrize(
    ("lang", "statement", "callee"),
    [
        ("go", "go s.run(x)", "s.run"),
        ("go", "defer s.mu.Unlock()", "s.mu.Unlock"),
        ("go", "x.(Thing).Do()", "x.Do"),
        ("go", "Map[int, string](xs)", "Map"),
        ("java", "new ArrayList<String>(x);", "ArrayList"),
        ("java", "((Foo) o).bar(x);", "o.bar"),
        ("java", "a.b().c(x);", "a.b().c"),
        ("php", "$this->db?->query($x);", "$this.db.query"),
        ("php", "parent::boot();", "parent::boot"),
        ("php", "\\exec($x);", "exec"),
        ("php", "`ls $x`;", "shell_exec"),
        ("php", "echo $x, 'b';", "echo"),
        ("php", "include $x;", "include"),
        ("rust", "Vec::<u8>::with_capacity(3);", "Vec::with_capacity"),
        ("rust", "(x as u64).pow(2);", "x.pow"),
        ("rust", 'log::info!("{}", self.name(x));', "self.name"),
        ("rust", "std::mem::drop(x);", "std::mem::drop"),
        ("csharp", "a?.B?.Call(x);", "a.B.Call"),
        ("csharp", "this.Get<Order>(x);", "this.Get"),
        ("csharp", "new List<string> { x };", "List"),
    ],
)
def test_a_call_is_named_as_it_is_written_without_generics_and_casts(lang: str, statement: str, callee: str) -> None:
    assert callee in parse_body(lang, statement).calls


@pytest.mark.parametrize(
    ("lang", "statement", "thrown"),
    [
        ("go", 'panic(errors.New("x"))', ["errors.New", "panic"]),
        ("go", "panic(&NoOrder{id: 1})", ["NoOrder", "panic"]),
        ("java", "throw new NoOrder<T>(x);", ["NoOrder"]),
        ("php", "$x ?? throw new \\Shop\\NoOrder();", ["Shop\\NoOrder"]),
        ("rust", 'panic!("{x}");', ["panic"]),
        ("rust", "match x { 1 => std::unreachable!(), _ => y() }", ["panic", "unreachable"]),
        ("csharp", "var y = x ?? throw new NoOrder(1);", ["NoOrder"]),
    ],
)
def test_what_is_thrown_is_named(lang: str, statement: str, thrown: list[str]) -> None:
    assert parse_body(lang, statement).throws == thrown


@pytest.mark.parametrize(
    ("lang", "statement", "target", "names"),
    [
        ("go", "total += item", "total", ["item", "total"]),
        ("go", "switch t := v.(type) { case int: use(t) }", "t", ["v"]),
        ("go", "for k, v := range pairs { use(k) }", "k", ["pairs"]),
        ("java", "total += item;", "total", ["item", "total"]),
        ("java", "if (o instanceof String s) { use(s); }", "s", ["o"]),
        ("java", "var s = switch (x) { case 1 -> a; default -> b; };", "s", ["x", "a", "b"]),
        ("php", "foreach ($pairs as $k => $v) { f($k); }", "$v", ["$pairs"]),
        ("php", "[$a, 'q' => $b] = $pair;", "$b", ["$pair"]),
        ("php", '$sql = "select {$this->name} from $t";', "$sql", ["$this.name", "$t"]),
        ("rust", "match x { Some(v) if v > 1 => use_it(v), None => other() }", "v", ["x"]),
        ("rust", "if let Some(Order { id, .. }) = x { use_it(id); }", "id", ["x"]),
        ("rust", "let y = if a { b } else { c };", "y", ["a", "b", "c"]),
        ("csharp", "total += item;", "total", ["item", "total"]),
        ("csharp", "if (o is string s) { Use(s); }", "s", ["o"]),
        ("csharp", "var (a, b) = pair;", "b", ["pair"]),
        ("csharp", 'var s = $"select {name} {order.Id:x}";', "s", ["name", "order.Id"]),
    ],
)
def test_a_value_flows_to_every_name_that_receives_it(lang: str, statement: str, target: str, names: list[str]) -> None:
    flowing = find_step(parse_body(lang, statement), target)

    assert set(flowing.names) <= set(names)
    assert set(flowing.names) >= set(names[-1:])


@pytest.mark.parametrize(
    ("lang", "statement", "types"),
    [
        ("go", "x := &Order{id: 1}", {"x": "*Order"}),
        ("go", "var a, b int", {"a": "int", "b": "int"}),
        ("go", "y := shop.Find(1)", {}),
        ("java", "final Map<K, V> m = null, n;", {"m": "Map<K, V>", "n": "Map<K, V>"}),
        ("java", "var m = new Order();", {"m": "Order"}),
        ("php", "$o = new Shop\\Order(); $n = 1.5;", {"$o": "Shop\\Order", "$n": "float"}),
        ("rust", "let o = Order::new(1); let v = vec![1];", {"o": "Order", "v": "Vec"}),
        ("rust", "let x: Option<u8> = None;", {"x": "Option<u8>"}),
        ("csharp", "Order o = new(), p; var q = (Foo)x;", {"o": "Order", "p": "Order", "q": "Foo"}),
    ],
)
def test_types_are_those_declared_or_given_away(lang: str, statement: str, types: dict[str, str]) -> None:
    assert map_types(parse_body(lang, statement)) == types


def test_arms_of_a_switch_are_blocks_of_their_own() -> None:
    switches = {
        "go": "switch x {\ncase 1:\na = b\nc = a\ncase 2:\nd = e\ndefault:\ng = h\n}",
        "java": "switch (x) { case 1: a = b; c = a; break; case 2: d = e; default: g = h; }",
        "php": "switch ($x) { case 1: $a = $b; $c = $a; case 2: $d = $e; default: $g = $h; }",
        "rust": "match x { 1 => { a = b; c = a; } 2 => { d = e; } _ => { g = h; } }",
        "csharp": "switch (x) { case 1: a = b; c = a; break; case 2: d = e; default: g = h; }",
    }

    for lang, switch in switches.items():
        steps = {step.targets[0].lstrip("$"): step.block for step in parse_body(lang, switch).steps}

        assert steps["a"] == steps["c"], lang
        assert len({steps["a"], steps["d"], steps["g"], 0}) == 4, lang


def test_the_last_expression_of_a_rust_function_is_returned() -> None:
    tail = find_chunk("rust", "fn f(x: u8) -> u8 { let y = g(x); y }", "f")
    nested = find_chunk("rust", "fn f(x: u8) -> u8 { if x > 1 { a } else { b } }", "f")
    statement = find_chunk("rust", "fn f(x: u8) { g(x); }", "f")

    assert find_step(tail, "return").names == ["y"]
    assert find_step(nested, "return").names == ["a", "b"]
    assert not any("return" in step.targets for step in statement.steps)


def test_names_within_a_format_string_are_read() -> None:
    chunk = parse_body("rust", 'let s = format!("{name} {{no}} {id:>8} {}", self.total);')

    assert {"name", "id", "self.total"} <= set(chunk.reads)
    assert "no" not in chunk.reads


def test_an_await_within_a_chain_counts() -> None:
    rust = "async fn f() { let s = client.get(u).send().await?.text().await?; }"
    csharp = "class C { async Task F() { (await Get(u)).Name(); await Put(s).ConfigureAwait(false); } }"

    assert find_chunk("rust", rust, "f").awaits == ["client.get().send", "client.get().send().text"]
    assert find_chunk("csharp", csharp, "C.F").awaits == ["Get", "Put"]


def test_a_property_without_code_is_a_field() -> None:
    parsed_file = parse_source("csharp", "class A { public int X { get; set; } = 1; public int Y => X; }")

    assert [chunk.name for chunk in parsed_file.chunks] == ["A", "A.Y"]
    assert map_types(parsed_file.chunks[0]) == {"X": "int"}


def test_a_short_echo_tag_is_an_echo() -> None:
    (chunk,) = parse_source("php", "<b><?= $_GET['x'] ?></b><?php ?><i><?= $y ?></i>").chunks

    assert chunk.calls == ["echo"]
    assert [step.calls[0].arguments[0].names for step in chunk.steps] == [["$_GET[]"], ["$y"]]


def test_named_arguments_keep_their_names() -> None:
    php = parse_body("php", "f($a, limit: $b, LIMIT);")
    csharp = parse_body("csharp", "Find(a, limit: b);")

    assert [argument.keyword for argument in php.steps[0].calls[0].arguments] == ["", "limit", ""]
    assert [argument.keyword for argument in csharp.steps[0].calls[0].arguments] == ["", "limit"]


def test_functions_with_a_name_inside_of_others_are_chunks() -> None:
    sources = {
        "go": ("package p\nfunc f() { g := func(n int) int { return n } }", "f.g"),
        "java": ("class C { void f() { F g = n -> n + 1; } }", "C.f.g"),
        "php": ("<?php function f() { $g = fn(int $n): int => $n; }", "f.$g"),
        "rust": ("fn f() { let g = |n: i32| n + 1; }", "f.g"),
        "csharp": ("class C { void F() { int g(int n) { return n; } } }", "C.F.g"),
    }

    for lang, (source, name) in sources.items():
        chunk = find_chunk(lang, source, name)

        assert chunk.kind == "function"
        assert chunk.returns
        assert [param.lstrip("$") for param in chunk.params] == ["n"]


@pytest.mark.parametrize(
    ("lang", "source"),
    [
        ("go", "package p\nfunc good() {}\nfunc bad( {\nfunc better() {}\n"),
        ("java", "class A { void good() {} void bad( { } void better() {} }"),
        ("php", "<?php function good() {} function bad( {} function better() {}"),
        ("rust", "fn good() {}\nfn bad( {}\nfn better() {}"),
        ("csharp", "class A { void good() {} void bad( { } void better() {} }"),
    ],
)
def test_a_syntax_error_leaves_what_is_before_it_alone(lang: str, source: str) -> None:
    parsed_file = parse_declarations(lang, "shop", source.encode())

    assert "line" in parsed_file.problem
    assert "good" in {chunk.name.rpartition(".")[2] for chunk in parsed_file.chunks}


def test_no_point_of_the_parser_is_ever_asked_for() -> None:
    """Forbid points: version 0.26.0 of the parser frees the numbers of a point too early."""
    marks = tuple(f".{end}_point{after}" for end in ("start", "end") for after in ".,)[\n")
    asking = [path for path in PACKAGE_FOLDER.rglob("*.py") if any(mark in path.read_text() for mark in marks)]

    assert asking == []


@pytest.mark.parametrize(
    ("lang", "opening"),
    [
        ("go", "package p\nvar x = " + "[]T{" * 3_000),
        ("go", "package p\nfunc f() { " + "go func() { " * 1_000),
        ("java", "class A { Object o = " + "new B() { Object p = " * 500),
        ("java", "class A { int f() { return " + "a ? b : " * 3_000),
        ("php", "<?php $x = <<<E\n" + "{$a->b[" * 3_000),
        ("php", "<?php $x = " + "fn() => " * 1_000),
        ("rust", "fn f() { " + "vec![a.b(" * 3_000),
        ("rust", "use " + "a::{" * 3_000),
        ("rust", "type A = " + "Box<" * 3_000),
        ("csharp", "class A { object o = " + '$@"{' * 500),
        ("csharp", "namespace a { " * 1_000),
    ],
    ids=lambda parameter: parameter[:24],
)
def test_what_never_ends_is_read_as_far_as_it_goes(lang: str, opening: str) -> None:
    data = opening.encode()

    check_laws(parse_declarations(lang, "shop", data), data)
