"""Shell: the commands of a script are its calls, and its variables are named without the `$`.

What a script is given keeps it (`$1`, `$@`), since a number or a sign alone is no name.
"""

from cleats.toolsets.code.facts import Argument
from cleats.toolsets.code.languages.assignments import assign
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import Assign, Declares, Language
from cleats.toolsets.code.languages.walk import Flow, Walk

_SOURCES = ("source", ".")
_READERS = ("read", "mapfile", "readarray")
_JUMPS = ("break", "continue", "return", ":")
_PLACED = ("simple_expansion", "expansion", "string")
_AUGMENTED = Assign(left="name", right="value", augmented=True)
_COUNTED = Assign()
_COUNTED_UP = Assign(augmented=True)
_COMPARED = (b"==", b"!=", b"<=", b">=")


def _command(walk: Walk, node: int, flow: Flow | None) -> bool:
    if flow is None:
        saved, walk.calls = walk.calls, []
        _command(walk, node, value := Flow())
        walk.step(node, [], value)
        walk.calls = saved
        return True
    syntax, callee = walk.syntax, ""
    arguments: list[Argument] = []
    words: list[str] = []
    for child in syntax.children(node):
        field = syntax.fields[child]
        if field == "name":
            callee = _callee(walk, child, flow)
        elif field == "argument":
            arguments.append(walk.argument(child))
            words.append(syntax.text(child))
        else:
            walk.visit(child, None if syntax.kinds[child] == "variable_assignment" else flow)
    if callee in _JUMPS:
        walk.frame.breaks += callee == "break"
        walk.frame.continues += callee == "continue"
        return True
    if callee in _SOURCES and words:
        walk.imports[words[0].strip("\"'")] = None
    elif callee in _READERS:
        _fill(walk, words)
    walk.record_call(node, callee, arguments, flow)
    return True


def _callee(walk: Walk, node: int, flow: Flow) -> str:
    """The name of a command; one that is made of a variable reads it and has none."""
    syntax = walk.syntax
    if node + 1 < syntax.stops[node] and syntax.kinds[node + 1] != "word":
        walk.visit(node, flow)
        return ""
    return syntax.text(node)


def _fill(walk: Walk, words: list[str]) -> None:
    """`read -r name` gives a value to `name`."""
    for word in words:
        if word.isidentifier():
            walk.frame.writes[word] = None


def _expansion(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`$1` and `$@` keep their sign."""
    syntax = walk.syntax
    first = node + 1
    if first >= syntax.stops[node]:
        return False
    name = syntax.text(first)
    is_given = syntax.kinds[first] == "special_variable_name" or name.isdigit()
    if not is_given:
        return False
    walk.frame.reads[f"${name}"] = None
    if flow is not None:
        flow.names.append(f"${name}")
    for child in syntax.children(node):
        if child != first:
            walk.visit(child, flow)
    return True


def _assigned(walk: Walk, node: int, flow: Flow | None) -> bool:
    syntax = walk.syntax
    name, value = syntax.child(node, "name"), syntax.child(node, "value")
    if name == NONE:
        return False
    end = syntax.starts[value] if value != NONE else syntax.ends[node]
    is_added = syntax.data[syntax.ends[name] : end].strip().startswith(b"+=")
    if is_added:
        assign(walk, node, flow, _AUGMENTED)
        return True
    given = _placed(syntax, value) if value != NONE else ""
    if given and syntax.kinds[name] == "variable_name":
        walk.frame.aliases[f"{syntax.text(name)}={given}"] = None
    return False


def _placed(syntax: Syntax, node: int) -> str:
    """The variable that an expansion is all about: `$x`, `${x}`, `"$x"`."""
    text = syntax.text(node).strip('"')
    while syntax.kinds[node] in _PLACED and syntax.stops[node] > node + 1:
        node += 1
    name = syntax.text(node)
    named = syntax.kinds[node] == "variable_name" and name.isidentifier()
    return name if named and text in (f"${name}", f"${{{name}}}") else ""


def _counted(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`((x += 1))`; in a test `=` compares."""
    syntax = walk.syntax
    left, right = syntax.child(node, "left"), syntax.child(node, "right")
    if NONE in (left, right) or syntax.kinds[left] not in ("variable_name", "subscript"):
        return False
    operator = syntax.data[syntax.ends[left] : syntax.starts[right]].strip()
    if not operator.endswith(b"=") or operator in _COMPARED:
        return False
    assign(walk, node, flow, _COUNTED if operator == b"=" else _COUNTED_UP)
    return True


def _declared(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`local x` gives no value; `export x` is for those who come after."""
    syntax = walk.syntax
    word = syntax.data[syntax.starts[node] : syntax.ends[node]].split(None, 1)[:1]
    is_exported = word == [b"export"]
    for child in syntax.children(node):
        kind = syntax.kinds[child]
        name = syntax.child(child, "name") if kind == "variable_assignment" else child
        is_name = name != NONE and syntax.kinds[name] in ("variable_name", "word")
        if is_exported and is_name and not syntax.text(name).startswith("-"):
            walk.exports[syntax.text(name)] = None
        if kind == "variable_name" and is_exported:
            walk.frame.reads[syntax.text(child)] = None
        elif kind != "variable_name":
            walk.visit(child, None)
    return True


def _gated(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`if` and `elif`: what follows the `then` may not run."""
    syntax, outside = walk.syntax, walk.block
    walk.frame.branches += 1
    for child in syntax.children(node):
        kind = syntax.kinds[child]
        if kind == "then":
            walk.frame.blocks += 1
            walk.block = walk.frame.blocks
        elif kind in ("elif_clause", "else_clause"):
            walk.block = outside
            walk.arms([child])
        else:
            walk.visit(child, None)
    walk.block = outside
    return True


def _item(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`*)` is what happens otherwise."""
    first = node + 1
    if first >= walk.syntax.stops[node] or walk.syntax.text(first) != "*":
        return False
    walk.arm(node, flow)
    return True


def _quoted(walk: Walk, node: int, flow: Flow | None) -> bool:
    """Text between single quotes is taken as it is."""
    if flow is not None:
        flow.text += walk.syntax.text(node)[1:-1][:120]
    return True


SHELL = Language(
    id="shell",
    grammar="tree_sitter_bash",
    declares={
        "function_definition": Declares("function"),
        "variable_assignment": Declares("constant", lines=3, top=True),
    },
    doc_comments=("# ", "#\n", "#\t", "##"),
    names=frozenset({"variable_name", "special_variable_name"}),
    indexes={"subscript": "name"},
    assigns={
        "variable_assignment": Assign(left="name", right="value"),
        "for_statement": Assign(left="variable", right="value", loop=True),
    },
    removes=frozenset({"unset_command"}),
    updates=frozenset({"postfix_expression"}),
    texts=frozenset({"word", "string_content", "number", "heredoc_content"}),
    arms=frozenset({"elif_clause", "else_clause"}),
    cases=frozenset({"case_item"}),
    loops=frozenset({"for_statement", "c_style_for_statement", "while_statement"}),
    ignored=frozenset({"heredoc_start", "heredoc_end", "file_descriptor", "test_operator"}),
    tokens=frozenset({"then"}),
    hooks={
        "command": _command,
        "simple_expansion": _expansion,
        "expansion": _expansion,
        "variable_assignment": _assigned,
        "binary_expression": _counted,
        "declaration_command": _declared,
        "if_statement": _gated,
        "elif_clause": _gated,
        "case_item": _item,
        "raw_string": _quoted,
    },
)
