"""The harder syntax of Kotlin."""

from tests.toolsets.code.analysis.languages.test_tables_php_to_typescript import find_chunk, map_kinds, parse_source

KOTLIN_SOURCE = """
package shop

import shop.parts.*
import shop.Counter as Till

@Entity
data class Order(val id: Int, private var note: String = "x") : Base(id), Comparable<Order> {
    constructor(a: String) : this(a.toInt())
    val total: Int get() = id * 2
    var plain: Int = 3
    companion object {
        fun make() = Order(1)
    }
    override fun compareTo(other: Order): Int = 0
    protected open fun guarded() {}
    internal fun inner() {}
}
sealed interface Shape
enum class Color { RED, GREEN }
object Single : Base() {
    fun go() {}
}
fun String.shout(times: Int = MAX): String = this.uppercase()
private fun hidden() {}
val handler = { x: Int -> log(x) }
"""


def test_kotlin_declarations_and_their_kinds() -> None:
    assert map_kinds("kotlin", KOTLIN_SOURCE) == {
        "Order": "class",
        "Order.constructor": "constructor",
        "Order.total": "property",
        "Order.make": "method",
        "Order.compareTo": "method",
        "Order.guarded": "method",
        "Order.inner": "method",
        "Shape": "interface",
        "Color": "enum",
        "Single": "class",
        "Single.go": "method",
        "String.shout": "function",
        "hidden": "function",
        "handler": "function",
    }
    assert parse_source("kotlin", KOTLIN_SOURCE).imports == ["shop.parts.*", "shop.Counter"]


def test_a_kotlin_class_has_parameters_bases_and_decorators() -> None:
    order = find_chunk("kotlin", KOTLIN_SOURCE, "Order")

    assert order.params == ["id", "note"]
    assert order.bases == ["Base", "Comparable<Order>"]
    assert order.decorators == ["Entity"]
    assert order.modifiers == ["data"]
    assert {("field", "note", "String"), ("field", "plain", "Int")} <= {
        (fact.where, fact.name, fact.type) for fact in order.types
    }


def test_kotlin_visibility_is_public_unless_said() -> None:
    visibilities = {
        declaration.name: declaration.visibility for declaration in parse_source("kotlin", KOTLIN_SOURCE).chunks
    }

    assert visibilities["Order"] == visibilities["Order.compareTo"] == visibilities["String.shout"] == "public"
    assert visibilities["Order.guarded"] == "protected"
    assert visibilities["Order.inner"] == "internal"
    assert visibilities["hidden"] == "private"


def test_an_extension_function_is_named_after_the_type_and_its_default_is_no_parameter() -> None:
    shout = find_chunk("kotlin", KOTLIN_SOURCE, "String.shout")

    assert shout.params == ["times"]
    assert shout.reads == ["MAX", "this"]
    assert (shout.return_type, shout.returns) == ("String", True)


def test_kotlin_awaits_branches_and_values() -> None:
    source = """suspend fun run(items: List<Int>) {
    val (a, b) = pair
    for ((i, v) in items.withIndex()) { n += v; if (v > 1) continue else break }
    val r = when (n) {
        1, 2 -> "a"
        is String -> { b() }
        else -> d
    }
    val d = load(1).await()
    items.map { x -> x * 2 }.filter { it > 1 }
    try { go() } catch (e: IOException) { throw Oops("x", e) }
    obj?.field?.call(1, name = "x")
    cache["k"] = 2
    this.open = a
    exec("report $name ${user.id}")
}
"""
    function = find_chunk("kotlin", source, "run")

    assert function.is_async
    assert function.awaits == ["load"]
    assert function.throws == ["Oops"]
    assert (function.branches, function.loops, function.breaks, function.continues) == (4, 1, 1, 1)
    assert {"obj.field.call", "items.map().filter", "Oops"} <= set(function.calls)
    assert function.mutates == ["cache[]", "this.open"]
    assert function.aliases == ["this.open=a"]
    executed = [call for step in function.steps for call in step.calls if call.callee == "exec"]
    assert executed[0].arguments[0].names == ["name", "user.id"]


def test_a_quoted_name_is_given_without_its_quotes() -> None:
    assert map_kinds("kotlin", "fun `is open`() {}\n") == {"is open": "function"}
    assert map_kinds("swift", "func `is`() {}\n") == {"is": "function"}
