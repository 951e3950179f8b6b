"""The harder syntax of C++."""

from tests.toolsets.code.analysis.languages.test_tables_php_to_typescript import find_chunk, map_kinds, parse_source

CPP_SOURCE = """
namespace shop::desk {
template <typename T> class Box : public Base<T>, private virtual ns::Other {
public:
  explicit Box(int a) : value_(a), Base<T>(a) { init(); }
  ~Box() { close(); }
  virtual int get() const override = 0;
  T& operator[](int i) { return items[i]; }
  operator bool() const { return true; }
private:
  T value_{};
  struct Inner { int z; };
  int hidden() { return 1; }
};
}
template <class T> T Box<T>::pull(T&& x) && { return std::move(x); }
int ns::Foo::bar(const std::string& s) const { return s.size(); }
Foo::Foo(int x) : y(x) {}
Foo::operator bool() const { return true; }
namespace { int local() { return 1; } }
TEST(Desk, Opens) { go(); }
struct Point { void move() {} };
"""


def test_types_namespaces_and_methods_in_and_out_of_line_are_chunks() -> None:
    assert map_kinds("cpp", CPP_SOURCE) == {
        "shop.desk": "namespace",
        "shop.desk.Box": "class",
        "shop.desk.Box.Box": "constructor",
        "shop.desk.Box.~Box": "method",
        "shop.desk.Box.get": "method",
        "shop.desk.Box.operator[]": "method",
        "shop.desk.Box.operator bool": "method",
        "shop.desk.Box.Inner": "struct",
        "shop.desk.Box.hidden": "method",
        "Box.pull": "method",
        "ns.Foo.bar": "method",
        "Foo.Foo": "constructor",
        "Foo.operator bool": "method",
        "local": "function",
        "Desk.Opens": "function",
        "Point": "struct",
        "Point.move": "method",
    }


def test_bases_are_named_without_how_they_are_inherited() -> None:
    box = find_chunk("cpp", CPP_SOURCE, "shop.desk.Box")

    assert box.bases == ["Base<T>", "ns::Other"]
    assert box.signature.startswith("template <typename T> class Box")


def test_sections_and_places_give_visibility() -> None:
    visibilities = {declaration.name: declaration.visibility for declaration in parse_source("cpp", CPP_SOURCE).chunks}

    assert visibilities["shop.desk.Box.Box"] == "public"
    assert visibilities["shop.desk.Box.hidden"] == visibilities["shop.desk.Box.Inner"] == "private"
    assert (visibilities["local"], visibilities["Point.move"], visibilities["Point"]) == ("private", "public", "public")


def test_a_constructor_writes_what_it_initialises() -> None:
    constructor = find_chunk("cpp", CPP_SOURCE, "shop.desk.Box.Box")

    assert constructor.writes == ["value_"]
    assert constructor.calls == ["Base", "init"]
    assert constructor.modifiers == ["explicit"]


def test_lambdas_with_a_name_are_chunks_and_others_belong_to_what_is_around() -> None:
    source = """void run() {
    auto twice = [this, y = 2](int z) -> int { return z * y; };
    each(items, [](int z) { log(z); return z; });
}
"""
    outer, inner = find_chunk("cpp", source, "run"), find_chunk("cpp", source, "run.twice")

    assert inner.params == ["z"]
    assert (inner.return_type, inner.returns) == ("int", True)
    assert "log" in outer.calls
    assert not outer.returns


def test_values_types_and_exceptions() -> None:
    source = """void run() {
    for (auto& [k, v] : table) { k = v; }
    try { go(); } catch (const Oops& e) { throw std::runtime_error("x"); }
    auto p = new Foo(1);
    auto q = std::make_unique<Bar>(3);
    if (auto it = m.find(1); it != m.end()) it->second.go();
    obj.template cast<int>(1);
    delete p;
}
"""
    function = find_chunk("cpp", source, "run")

    types = {item.name: item.type for item in function.types}
    assert (types["e"], types["p"], types["q"]) == ("Oops", "Foo", "Bar")
    assert function.throws == ["std::runtime_error"]
    assert {"std::make_unique", "it.second.go", "obj.cast"} <= set(function.calls)
    assert (function.branches, function.loops) == (2, 1)
    assert [item.callee for step in function.steps for item in step.calls][2] == "new Foo"


def test_the_head_of_a_conversion_reads_nothing() -> None:
    function = find_chunk("cpp", "Foo :: operator bool() const { return on; }", "Foo.operator bool")

    assert function.reads == ["on"]
    assert function.modifiers == ["const"]


def test_a_coroutine_is_asynchronous() -> None:
    function = find_chunk("cpp", "Task f() { auto x = co_await load(1); co_return x; }", "f")

    assert function.is_async
    assert function.awaits == ["load"]
    assert function.returns
