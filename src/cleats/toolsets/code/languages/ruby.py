"""Ruby. Much of what is a keyword elsewhere is a call here: `raise`, `private`, `require`."""

from cleats.toolsets.code.facts import Argument
from cleats.toolsets.code.languages.assignments import target
from cleats.toolsets.code.languages.frame import Frame
from cleats.toolsets.code.languages.heads import declare
from cleats.toolsets.code.languages.ruby_words import PLACES, RAISES, call, identifier, made
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import (
    COMPARISONS,
    Assign,
    Call,
    Carrier,
    Declares,
    Language,
    Parameter,
)
from cleats.toolsets.code.languages.walk import LONGEST_TEXT, Flow, Walk, unique

_NAMESPACE = Declares("namespace")
_MIXIN = Declares("trait")
_MADE_TYPES = {
    "Struct.new": Declares("struct"),
    "Data.define": Declares("struct"),
    "Class.new": Declares("class"),
    "Module.new": Declares("trait"),
}
_ITERATORS = frozenset(
    {
        "map",
        "map!",
        "flat_map",
        "collect",
        "filter_map",
        "select",
        "filter",
        "reject",
        "find",
        "detect",
        "inject",
        "reduce",
        "times",
        "upto",
        "downto",
        "step",
        "loop",
        "cycle",
        "any?",
        "all?",
        "find_each",
        "sort_by",
        "group_by",
    }
)
"""Besides all that begin with `each`."""

_CONTROL = frozenset({"if", "unless", "case", "case_match", "while", "until", "for", "begin"})
_VALUELESS = frozenset({"assignment", "operator_assignment", "nil", "if_modifier"}) | {
    "unless_modifier",
    "while_modifier",
    "until_modifier",
    "return",
    "comment",
    "yield",
    "ensure",
    "rescue",
    "else",
}

_TARGETS = ("left_assignment_list", "destructured_left_assignment", "rest_assignment")


def _prepare(syntax: Syntax) -> None:
    """`a.b` in a list of targets is written like a call."""
    for node, kind in enumerate(syntax.kinds):
        if kind == "call" and syntax.kinds[syntax.parents[node]] in _TARGETS:
            syntax.kinds[node] = "assigned_member"


def _begin(_walk: Walk, _head: int, frame: Frame) -> None:
    """`class Shop::Desk` is what `Desk` in `module Shop` is."""
    if "::" in frame.name:
        name = frame.name.replace("::", ".").strip(".")
        frame.qualified = frame.qualified.removesuffix(frame.name) + name
        frame.name = name


def _settle(frame: Frame, around: Frame) -> None:
    is_method = frame.kind in ("method", "function")
    if frame.signature.startswith(("def self.", "def ::")) and is_method:
        frame.modifiers["static"] = None
    if not is_method or "static" in frame.modifiers or not frame.visibility:
        is_shown = around.around is None or around.kind in PLACES
        frame.visibility = "public" if is_shown else ""
    if frame.kind == "method" and frame.name == "initialize":
        frame.kind = "constructor"


def _module(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """A module that has methods of its own is a mixin, any other only a place for names."""
    syntax = walk.syntax
    named, body = syntax.child(node, "name"), syntax.child(node, "body")
    if named == NONE:
        return False
    mixes = body != NONE and any(syntax.kinds[child] == "method" for child in syntax.children(body))
    declare(walk, node, node, _MIXIN if mixes else _NAMESPACE, syntax.text(named))
    return True


def _singleton(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """What is in `class << self` belongs to the class itself."""
    count, section = len(walk.frames), walk.frame.section
    walk.frame.section = ""
    walk.descend(node, None)
    walk.frame.section = section
    for frame in walk.frames[count:]:
        if frame.around is walk.frame:
            frame.modifiers["static"] = None
    return True


def _block(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """A block of an iterator is a loop, and what it goes through reaches its parameters."""
    syntax = walk.syntax
    saved, walk.calls = walk.calls, []
    call = syntax.parents[node]
    method = syntax.child(call, "method") if call != NONE else NONE
    names: list[str] = []
    given = syntax.child(node, "parameters")
    if NONE not in (method, given):
        target(walk, given, names)
    if method != NONE and _iterates(syntax.text(method)):
        walk.frame.loops += 1
        value, receiver = Flow(), syntax.child(call, "receiver")
        if receiver != NONE and syntax.kinds[receiver] in walk.language.names:
            value.names.append(syntax.text(receiver))
        walk.step(node, names, value)
    body = syntax.child(node, "body")
    if body != NONE:
        walk.arm(body, None)
    walk.calls = saved
    return True


def _iterates(name: str) -> bool:
    return name in _ITERATORS or name.startswith("each")


def _assigned(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`a.b = c` is written like a call; `A = Struct.new(:x)` declares a type."""
    syntax = walk.syntax
    left, right = syntax.child(node, "left"), syntax.child(node, "right")
    if NONE in (left, right):
        return False
    if syntax.kinds[left] == "constant" and syntax.kinds[right] == "call":
        receiver, method = syntax.child(right, "receiver"), syntax.child(right, "method")
        if NONE not in (receiver, method):
            row = _MADE_TYPES.get(f"{syntax.text(receiver)}.{syntax.text(method)}")
            if row is not None:
                _take_made(walk, declare(walk, node, node, row, syntax.text(left)), right)
                return True
    if syntax.kinds[left] != "call":
        return False
    receiver, method = syntax.child(left, "receiver"), syntax.child(left, "method")
    if NONE in (receiver, method):
        return False
    saved, walk.calls = walk.calls, []
    walk.visit(right, value := Flow())
    name = f"{walk.path(receiver, Flow())}.{syntax.text(method)}"
    walk.frame.writes[name] = walk.frame.mutates[name] = None
    if syntax.kinds[node] == "operator_assignment":
        walk.frame.reads[name] = None
        value.names.append(name)
    elif syntax.kinds[right] in walk.language.names:
        walk.frame.aliases[f"{name}={syntax.text(right)}"] = None
    walk.step(node, [name], value)
    walk.calls = saved
    if flow is not None:
        flow.names.append(name)
    return True


def _take_made(walk: Walk, frame: Frame, made: int) -> None:
    """What a type that is made is given: a class its base, a struct its fields."""
    syntax = walk.syntax
    block, given = syntax.child(made, "block"), syntax.child(made, "arguments")
    if block != NONE:
        head = syntax.data[frame.start : syntax.starts[block]].decode("utf-8", "replace")
        frame.signature = " ".join(head.split())
    for child in syntax.children(given) if given != NONE else ():
        if syntax.kinds[child] == "simple_symbol":
            frame.params.append(syntax.text(child).lstrip(":"))
        elif frame.kind == "class":
            frame.bases.append(syntax.text(child))


def _body(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The last expression of a method is what it returns."""
    syntax = walk.syntax
    if syntax.kinds[syntax.parents[node]] not in ("method", "singleton_method") or walk.silent:
        return False
    children = list(syntax.children(node))
    for child in children[:-1]:
        walk.visit(child, None)
    for last in children[-1:]:
        kind = syntax.kinds[last]
        if kind in _VALUELESS or kind in _CONTROL or _is_silent(walk, last):
            walk.visit(last, None)
        else:
            walk.frame.returns = True
            walk.give(last)
    return True


def _is_silent(walk: Walk, node: int) -> bool:
    syntax = walk.syntax
    if walk.frame.name.rpartition(".")[2] == "initialize":
        return True
    if syntax.kinds[node] == "identifier":
        return syntax.text(node) in RAISES
    method = syntax.child(node, "method")
    return method != NONE and syntax.text(method) in (*RAISES, "puts", "print", "p", "loop", "each")


def _intrinsic(walk: Walk, node: int, flow: Flow | None) -> bool:
    """Backticks, `yield` and `super` are calls."""
    if flow is None:
        saved, walk.calls = walk.calls, []
        _intrinsic(walk, node, value := Flow())
        walk.step(node, [], value)
        walk.calls = saved
        return True
    kind = walk.syntax.kinds[node]
    walk.descend(node, given := Flow())
    argument = Argument(unique(given.names), given.calls, given.text[:LONGEST_TEXT])
    walk.record_call(node, "`" if kind == "subshell" else kind, [argument], flow)
    return True


def _rescue(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The variable of a `rescue` is given what was raised."""
    walk.frame.branches += 1
    syntax = walk.syntax
    for child in syntax.children(node):
        if syntax.fields[child] == "variable":
            target(walk, child, [])
        elif syntax.fields[child] == "exceptions":
            walk.use(child)
        else:
            walk.arms([child])
    return True


def _matched(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """Names in a pattern receive what they match."""
    syntax = walk.syntax
    pattern = syntax.child(node, "pattern")
    if pattern == NONE or syntax.kinds[node] != "in_clause":
        return False
    for at in range(pattern, syntax.stops[pattern]):
        if syntax.kinds[at] == "identifier":
            walk.frame.writes[syntax.text(at)] = None
        elif syntax.kinds[at] == "constant":
            walk.frame.uses[syntax.text(at)] = None
    walk.frame.branches += 1
    walk.arms(child for child in syntax.children(node) if child != pattern)
    return True


def _finish(walk: Walk) -> None:
    for frame in walk.frames:
        if frame.top and frame.visibility == "public":
            walk.exports[frame.name] = None


RUBY = Language(
    id="ruby",
    grammar="tree_sitter_ruby",
    declares={
        "class": Declares("class", bases=frozenset({"superclass"})),
        "module": _NAMESPACE,
        "method": Declares("function", inside="method"),
        "singleton_method": Declares("function", inside="method"),
        "assignment": Declares("constant", name=("left",), lines=3, top=True),
    },
    carriers={"assignment": Carrier("left", "right")},
    closures=frozenset({"lambda"}),
    endless=frozenset({"method", "singleton_method"}),
    parameters={
        "optional_parameter": Parameter(),
        "keyword_parameter": Parameter(),
        "splat_parameter": Parameter(),
        "hash_splat_parameter": Parameter(),
        "block_parameter": Parameter(),
    },
    begin=_begin,
    settle=_settle,
    doc_comments=("# ", "#\n", "##", "#\t"),
    names=frozenset(
        {
            "identifier",
            "constant",
            "instance_variable",
            "class_variable",
            "global_variable",
            "self",
        }
    ),
    members={"scope_resolution": ("scope", "name"), "assigned_member": ("receiver", "method")},
    joints={"scope_resolution": "::"},
    indexes={"element_reference": "object"},
    calls={"call": Call(function=("method",), receiver=("receiver",))},
    keywords={"pair": ("key", "value")},
    transparent=frozenset({"parenthesized_statements"}),
    assigns={
        "assignment": Assign(),
        "operator_assignment": Assign(augmented=True),
        "for": Assign(left="pattern", right="value", loop=True),
    },
    targets=frozenset({"left_assignment_list", "destructured_parameter"}),
    texts=frozenset({"string_content", "heredoc_content", "simple_symbol"}),
    literals={
        "string": "String",
        "heredoc_beginning": "String",
        "integer": "Integer",
        "float": "Float",
        "true": "Boolean",
        "false": "Boolean",
        "array": "Array",
        "string_array": "Array",
        "symbol_array": "Array",
        "hash": "Hash",
        "simple_symbol": "Symbol",
        "regex": "Regexp",
        "range": "Range",
        "lambda": "Proc",
    },
    verdicts={"binary": COMPARISONS, "unary": frozenset({"!", "not"})},
    choices={
        "conditional": ("condition",),
        "if": ("condition",),
        "unless": ("condition",),
        "case": ("value",),
    },
    made=made,
    lists=frozenset({"argument_list"}),
    nothing=frozenset({"nil"}),
    returns=frozenset({"return"}),
    branches=frozenset(
        {
            "if",
            "elsif",
            "unless",
            "if_modifier",
            "unless_modifier",
            "conditional",
            "rescue_modifier",
        }
    ),
    cases=frozenset({"when"}),
    loops=frozenset({"for", "while", "until", "while_modifier", "until_modifier"}),
    breaks=frozenset({"break"}),
    continues=frozenset({"next"}),
    ignored=frozenset({"undef", "hash_key_symbol"}),
    hooks={
        "module": _module,
        "singleton_class": _singleton,
        "identifier": identifier,
        "call": call,
        "block": _block,
        "do_block": _block,
        "assignment": _assigned,
        "operator_assignment": _assigned,
        "body_statement": _body,
        "subshell": _intrinsic,
        "yield": _intrinsic,
        "super": _intrinsic,
        "rescue": _rescue,
        "in_clause": _matched,
    },
    prepare=_prepare,
    finish=_finish,
)
