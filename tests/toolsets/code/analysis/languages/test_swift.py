"""The harder syntax of Swift."""

from tests.toolsets.code.analysis.languages.test_tables_php_to_typescript import find_chunk, map_kinds, parse_source

SWIFT_SOURCE = """
import Foundation

public struct Point: Equatable, Codable {
    var x: Int = 0
    private(set) var z: [String: Int]
    var length: Double { sqrt(x) }
    var watched: Int = 0 {
        didSet { log() }
    }
    init(x: Int, _ y: Int = LIMIT) throws { self.x = x }
    deinit { close() }
    subscript(i: Int) -> Int { get { items[i] } }
    mutating func move(by dx: Int, to other: Point?) -> Bool { x += dx; return true }
    static func == (a: Point, b: Point) -> Bool { a.x == b.x }
}
extension Point: Hashable {
    func hash() {}
}
public protocol Shape: AnyObject {
    func draw(at p: Point) throws -> Int
}
enum Color: String {
    case red, green
    func shade() {}
}
actor Store {
    fileprivate func go() async {}
}
let twice = { (x: Int) in x * 2 }
open class Base {}
"""


def test_swift_declarations_and_their_kinds() -> None:
    kinds_in_order = [
        (declaration.name, declaration.kind) for declaration in parse_source("swift", SWIFT_SOURCE).chunks[1:]
    ]

    assert kinds_in_order == [
        ("Point", "struct"),
        ("Point.length", "property"),
        ("Point.watched", "property"),
        ("Point.init", "constructor"),
        ("Point.deinit", "method"),
        ("Point.subscript", "property"),
        ("Point.move", "method"),
        ("Point.==", "method"),
        ("Point", "impl"),
        ("Point.hash", "method"),
        ("Shape", "interface"),
        ("Shape.draw", "method"),
        ("Color", "enum"),
        ("Color.shade", "method"),
        ("Store", "class"),
        ("Store.go", "method"),
        ("twice", "function"),
        ("Base", "class"),
    ]


def test_swift_heads_say_parameters_results_and_words() -> None:
    move, initializer = find_chunk("swift", SWIFT_SOURCE, "Point.move"), find_chunk("swift", SWIFT_SOURCE, "Point.init")

    assert move.params == ["dx", "other"]
    assert (move.return_type, move.modifiers) == ("Bool", ["mutating"])
    assert initializer.params == ["x", "y"]
    assert initializer.modifiers == ["throws"]
    assert "LIMIT" in initializer.reads
    assert find_chunk("swift", SWIFT_SOURCE, "Store.go").is_async


def test_swift_visibility_is_internal_unless_said() -> None:
    visibilities = {
        declaration.name: declaration.visibility for declaration in parse_source("swift", SWIFT_SOURCE).chunks
    }

    assert visibilities["Point.move"] == visibilities["Color"] == visibilities["Point.hash"] == "internal"
    assert visibilities["Shape"] == visibilities["Shape.draw"] == visibilities["Base"] == "public"
    assert visibilities["Store.go"] == "private"
    assert parse_source("swift", SWIFT_SOURCE).exports == ["Point", "Shape", "Base"]


def test_bases_of_types_and_extensions() -> None:
    bases = {
        (declaration.name, declaration.kind): declaration.bases
        for declaration in parse_source("swift", SWIFT_SOURCE).chunks
    }

    assert bases["Point", "struct"] == ["Equatable", "Codable"]
    assert bases["Point", "impl"] == ["Hashable"]
    assert bases["Shape", "interface"] == ["AnyObject"]


def test_one_expression_is_what_a_body_returns() -> None:
    assert find_chunk("swift", SWIFT_SOURCE, "Point.length").returns
    assert not find_chunk("swift", SWIFT_SOURCE, "Point.hash").returns
    assert map_kinds("swift", "func f() { go() }") == {"f": "function"}
    assert not find_chunk("swift", "func f() { go() }", "f").returns


def test_swift_awaits_throws_and_branches() -> None:
    source = """func run(items: [Int]) async throws -> Int? {
    guard let first = items.first, first > 1 else { return nil }
    if let a = b, case .some(let c) = d { go(a) } else if x { stop() }
    switch n {
    case 1, 2: a()
    case .rgb(let r, _): b(r)
    default: break
    }
    for (i, v) in items.enumerated() { if v > 1 { continue } }
    while n < 3 { n += 1 }
    repeat { n -= 1 } while n > 0
    let d = try await load(1, name: "x")
    do { try go() } catch let e as NetError { throw Oops.missing(1) } catch { throw error }
    return d
}
"""
    function = find_chunk("swift", source, "run")

    assert function.awaits == ["load"]
    assert function.throws == ["Oops.missing", "error"]
    assert (function.branches, function.loops, function.breaks, function.continues) == (8, 3, 1, 1)
    assert {"first", "a", "c", "r", "i", "v", "e"} <= set(function.writes)
    assert any(step.targets == ["first"] and step.names == ["items.first"] for step in function.steps)


def test_an_index_is_no_call() -> None:
    source = """func f(m: [Int]) {
    cache[0] = m[1]
    self.map["k"]! += 2
    obj?.field!.call(1) { done() }
    let s = "a \\(name)"
}
"""
    function = find_chunk("swift", source, "f")

    assert function.mutates == ["cache[]", "self.map[]"]
    assert function.calls == ["done", "obj.field.call"]
    assert "m[]" in function.reads
    assert any(step.targets == ["s"] and step.names == ["name"] for step in function.steps)


def test_swift_calls_behind_a_not_or_a_try_keep_their_names() -> None:
    body = """
func load(_ a: String) throws {
    if !names.contains(a) { return }
    guard !isKnown(a) else { return }
    let found = try JSONDecoder().decode(Desk.self, from: read(a))
    let empty = !list.filter { $0.ok }.isEmpty
}
"""
    load = find_chunk("swift", body, "load")

    assert load.calls == [
        *("names.contains", "isKnown", "JSONDecoder", "read", "JSONDecoder().decode"),
        "list.filter",
    ]
    assert "names.contains" not in load.reads
    assert load.aliases == []


def test_swift_types_with_arguments_are_called_like_others() -> None:
    body = """
func load() {
    let seen = Set<String>(minimumCapacity: size())
    let inner = Outer.Inner<Int>().start(3)
}
"""
    load = find_chunk("swift", body, "load")

    assert load.calls == ["size", "Set", "Outer.Inner", "Outer.Inner().start"]
    assert "minimumCapacity" not in load.reads
    assert [(fact.name, fact.type) for fact in load.types] == [("seen", "Set<String>")]
