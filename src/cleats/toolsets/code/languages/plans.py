"""A language's table as one function per kind of node: what the walk does there."""

from collections.abc import Iterable
from functools import partial

from cleats.toolsets.code.facts import BEHIND
from cleats.toolsets.code.languages import assignments, heads
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import Hook, Kinds, Language
from cleats.toolsets.code.languages.walk import Action, Flow, Naming, Plan, Walk


def plan_for(language: Language) -> Plan:
    """The actions of a language.

    Where a kind is in several rows, the later one here comes first, and does what the earlier ones
    would do when it declines.
    """
    plan: dict[str, Action] = {}

    def add(kinds: Iterable[str], action: Action) -> None:
        for kind in kinds:
            plan[kind] = action

    add(language.ignored, _nothing)
    add(language.types | language.type_names, _type)
    add(language.names, _name)
    add([*language.members, *language.indexes], _path)
    add(language.calls, _call)
    add(language.texts, _text)
    add(language.comments, _comment)
    add(language.decorators, _decorator)
    add(language.returns, _return)
    add(language.throws, _throw)
    add(language.awaits, _await)
    add(language.yields, _yield)
    add(language.removes, assignments.remove)
    add(language.updates, assignments.update)
    add(language.assigns, assignments.assign)
    add(language.closures, heads.closure)
    add(language.imports, _import)
    for kind, operators in language.verdicts.items():
        plan[kind] = _telling(operators, plan.get(kind, Walk.descend))
    for kind, parts in language.choices.items():
        plan[kind] = _choosing(language, kind, parts, plan.get(kind, Walk.descend))
    for kind in [*language.carriers, *language.declares]:
        plan[kind] = partial(heads.declaration, otherwise=plan.get(kind, Walk.descend))
    for kind in (*language.breaks, *language.continues, *language.loops):
        plan[kind] = _counting(language, kind, plan.get(kind, Walk.descend))
    for kind in language.branches:
        parent, _, child = kind.rpartition(">")
        plan[child] = _branching(parent, plan.get(child, Walk.descend))
    add(language.cases, _case)
    add(language.defaults, Walk.arm)
    for kind, hook in language.hooks.items():
        plan[kind] = _hooked(hook, plan.get(kind, Walk.descend))
    return Plan(plan, _namings(language))


def _namings(language: Language) -> dict[str, Naming]:
    """How expressions are named; where a kind is in several rows, the later one here counts."""
    return {
        **{kind: _standing(name) for kind, name in language.classes.items()},
        **dict.fromkeys(language.transparent, Walk.within),
        **dict.fromkeys(language.calls, Walk.called),
        **dict.fromkeys(language.indexes, Walk.index),
        **dict.fromkeys(language.members, Walk.member),
        **dict.fromkeys(language.names | language.type_names, Walk.written),
    }


def _standing(name: str) -> Naming:
    return lambda _walk, _node, _flow: name


def _telling(operators: Kinds, action: Action) -> Action:
    def tell(walk: Walk, node: int, flow: Flow | None) -> None:
        if flow is not None and (not operators or _operator(walk.syntax, node) in operators):
            flow = Flow()
        action(walk, node, flow)

    return tell


def _operator(syntax: Syntax, node: int) -> str:
    """What is written between two operands, or before a single one."""
    first = node + 1
    second = syntax.stops[first] if first < syntax.stops[node] else first
    if second < syntax.stops[node]:
        start, end = syntax.ends[first], syntax.starts[second]
    else:
        start, end = syntax.starts[node], syntax.starts[first] if first < second else 0
    return syntax.data[start:end].strip().decode("utf-8", "replace")


def _choosing(
    language: Language, kind: str, parts: tuple[str | int, ...], action: Action
) -> Action:
    branches = kind in language.branches

    def choose(walk: Walk, node: int, flow: Flow | None) -> None:
        syntax = walk.syntax
        children = syntax.children(node)
        if flow is None:
            walk.arms(children) if branches else action(walk, node, None)
            return
        # Text in one of several values is not what the others begin with.
        flow.text = flow.text or BEHIND
        # `a ?: b` is `a` itself, if it is anything.
        has_other = syntax.child(node, "alternative") != NONE
        is_value = has_other and syntax.child(node, "consequence", "body") == NONE
        for place, child in enumerate(children):
            chooses = syntax.fields[child] in parts or syntax.kinds[child] in parts
            chooses = (chooses or place in parts) and not is_value
            walk.visit(child, Flow() if chooses else flow)

    return choose


def _counting(language: Language, kind: str, action: Action) -> Action:
    is_break, is_loop = kind in language.breaks, kind in language.loops
    plain = is_loop and action is Walk.descend

    def count(walk: Walk, node: int, flow: Flow | None) -> None:
        frame = walk.frame
        if is_loop:
            frame.loops += 1
        elif is_break:
            frame.breaks += 1
        else:
            frame.continues += 1
        if plain and flow is None:
            walk.arms(walk.syntax.children(node))
        else:
            action(walk, node, flow)

    return count


def _branching(parent: str, action: Action) -> Action:
    plain = action is Walk.descend

    def branch(walk: Walk, node: int, flow: Flow | None) -> None:
        if not parent or walk.syntax.kinds[walk.syntax.parents[node]] == parent:
            walk.frame.branches += 1
        if plain and flow is None:
            walk.arms(walk.syntax.children(node))
        else:
            action(walk, node, flow)

    return branch


def _case(walk: Walk, node: int, flow: Flow | None) -> None:
    walk.frame.branches += 1
    walk.arm(node, flow)


def _hooked(hook: Hook, action: Action) -> Action:
    def hooked(walk: Walk, node: int, flow: Flow | None) -> None:
        if not hook(walk, node, flow):
            action(walk, node, flow)

    return hooked


def _nothing(_walk: Walk, _node: int, _flow: Flow | None) -> None:
    pass


def _type(walk: Walk, node: int, _flow: Flow | None) -> None:
    walk.use(node)


def _decorator(walk: Walk, node: int, _flow: Flow | None) -> None:
    """One in a wrap, or before a declaration, is part of the head of that."""
    syntax, language = walk.syntax, walk.language
    parent = syntax.parents[node]
    if syntax.kinds[parent] in language.wraps:
        return
    below = syntax.stops[node]
    while below < syntax.stops[parent] and (
        syntax.kinds[below] in language.decorators or syntax.kinds[below] in language.comments
    ):
        below = syntax.stops[below]
    if below >= syntax.stops[parent] or syntax.kinds[below] not in language.declares:
        walk.use(node)


def _name(walk: Walk, node: int, flow: Flow | None) -> None:
    name = walk.syntax.text(node)
    walk.frame.reads[name] = None
    if flow is not None:
        flow.names.append(name)


def _path(walk: Walk, node: int, flow: Flow | None) -> None:
    if flow is None:
        saved, walk.calls = walk.calls, []
        _path(walk, node, value := Flow())
        walk.step(node, [], value)
        walk.calls = saved
        return
    path = walk.path(node, flow)
    if path:
        walk.frame.reads[path] = None
        flow.names.append(path)


def _call(walk: Walk, node: int, flow: Flow | None) -> None:
    walk.call(node, flow)


def _text(walk: Walk, node: int, flow: Flow | None) -> None:
    if flow is not None:
        if len(flow.text) < 120:
            if not flow.text and (flow.names or flow.calls):
                flow.text = BEHIND
            flow.text += walk.syntax.text(node)
        walk.descend(node, flow)


def _comment(walk: Walk, node: int, _flow: Flow | None) -> None:
    walk.comments.append((node, walk.frame))


def _import(walk: Walk, node: int, _flow: Flow | None) -> None:
    read = walk.language.imports[walk.syntax.kinds[node]]
    walk.imports.update(dict.fromkeys(read(walk.syntax, node)))


def _return(walk: Walk, node: int, _flow: Flow | None) -> None:
    syntax, language = walk.syntax, walk.language
    for child in syntax.children(node):
        if syntax.kinds[child] in language.comments:
            walk.visit(child, None)
            continue
        if syntax.kinds[assignments.sole(walk, child)] not in language.nothing and not walk.silent:
            walk.frame.returns = True
            assignments.infer(walk, child, "return", "")
        walk.give(child)


def _throw(walk: Walk, node: int, _flow: Flow | None) -> None:
    first = True
    for child in walk.syntax.children(node):
        if first and walk.syntax.kinds[child] not in walk.language.comments:
            first = False
            named = _named(walk, child, None)
            if named:
                walk.frame.throws[named] = None
        else:
            walk.visit(child, None)


def _await(walk: Walk, node: int, flow: Flow | None) -> None:
    for child in walk.syntax.children(node):
        named = _named(walk, child, flow)
        if named:
            walk.frame.awaits[named] = None


def _named(walk: Walk, node: int, flow: Flow | None) -> str:
    """Visit an expression; gives the callee of a call, the name of anything else that has one."""
    language, kind = walk.language, walk.syntax.kinds[node]
    if kind in language.calls:
        return walk.call(node, flow)
    if kind in language.members or kind in language.names:
        path = walk.path(node, flow)
        walk.frame.reads[path] = None
        if flow is not None:
            flow.names.append(path)
        return path
    walk.visit(node, flow)
    return ""


def _yield(walk: Walk, node: int, flow: Flow | None) -> None:
    if not walk.silent:
        walk.frame.is_generator = True
    if flow is not None:
        walk.descend(node, flow)
        return
    for child in walk.syntax.children(node):
        walk.give(child)
