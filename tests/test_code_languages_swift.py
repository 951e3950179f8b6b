"""The harder syntax of Swift."""

from tests.test_code_languages_b import chunk, kinds, read

SOURCE = """
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
    found = [(each.name, each.kind) for each in read("swift", SOURCE).chunks[1:]]

    assert found == [
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
    move, made = chunk("swift", SOURCE, "Point.move"), chunk("swift", SOURCE, "Point.init")

    assert move.params == ["dx", "other"]
    assert (move.return_type, move.modifiers) == ("Bool", ["mutating"])
    assert made.params == ["x", "y"]
    assert made.modifiers == ["throws"]
    assert "LIMIT" in made.reads
    assert chunk("swift", SOURCE, "Store.go").is_async


def test_swift_visibility_is_internal_unless_said() -> None:
    seen = {each.name: each.visibility for each in read("swift", SOURCE).chunks}

    assert seen["Point.move"] == seen["Color"] == seen["Point.hash"] == "internal"
    assert seen["Shape"] == seen["Shape.draw"] == seen["Base"] == "public"
    assert seen["Store.go"] == "private"
    assert read("swift", SOURCE).exports == ["Point", "Shape", "Base"]


def test_bases_of_types_and_extensions() -> None:
    found = {(each.name, each.kind): each.bases for each in read("swift", SOURCE).chunks}

    assert found["Point", "struct"] == ["Equatable", "Codable"]
    assert found["Point", "impl"] == ["Hashable"]
    assert found["Shape", "interface"] == ["AnyObject"]


def test_one_expression_is_what_a_body_returns() -> None:
    assert chunk("swift", SOURCE, "Point.length").returns
    assert not chunk("swift", SOURCE, "Point.hash").returns
    assert kinds("swift", "func f() { go() }") == {"f": "function"}
    assert not chunk("swift", "func f() { go() }", "f").returns


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
    found = chunk("swift", source, "run")

    assert found.awaits == ["load"]
    assert found.throws == ["Oops.missing", "error"]
    assert (found.branches, found.loops, found.breaks, found.continues) == (8, 3, 1, 1)
    assert {"first", "a", "c", "r", "i", "v", "e"} <= set(found.writes)
    assert any(step.targets == ["first"] and step.names == ["items.first"] for step in found.steps)


def test_an_index_is_no_call() -> None:
    source = """func f(m: [Int]) {
    cache[0] = m[1]
    self.map["k"]! += 2
    obj?.field!.call(1) { done() }
    let s = "a \\(name)"
}
"""
    found = chunk("swift", source, "f")

    assert found.mutates == ["cache[]", "self.map[]"]
    assert found.calls == ["done", "obj.field.call"]
    assert "m[]" in found.reads
    assert any(step.targets == ["s"] and step.names == ["name"] for step in found.steps)


def test_swift_calls_behind_a_not_or_a_try_keep_their_names() -> None:
    body = """
func load(_ a: String) throws {
    if !names.contains(a) { return }
    guard !isKnown(a) else { return }
    let found = try JSONDecoder().decode(Desk.self, from: read(a))
    let empty = !list.filter { $0.ok }.isEmpty
}
"""
    load = chunk("swift", body, "load")

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
    load = chunk("swift", body, "load")

    assert load.calls == ["size", "Set", "Outer.Inner", "Outer.Inner().start"]
    assert "minimumCapacity" not in load.reads
    assert [(each.name, each.type) for each in load.types] == [("seen", "Set<String>")]
