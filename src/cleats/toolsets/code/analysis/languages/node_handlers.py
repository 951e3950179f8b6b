"""A language table compiled to one function per kind of node, which the walk calls there."""

from collections.abc import Iterable
from functools import partial

from cleats.toolsets.code.analysis.facts import CONTINUED_TEXT_MARK
from cleats.toolsets.code.analysis.languages import assignments, declarations
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import KindSet, Language, NodeHook
from cleats.toolsets.code.analysis.languages.walk import NameReader, NodeAction, SyntaxWalker, ValueFlow, WalkPlan


def build_plan(language: Language) -> WalkPlan:
    """Build the actions of a language.

    Where a kind is in several rows, the row added last is tried first and falls back to the earlier
    ones when it declines.
    """
    actions: dict[str, NodeAction] = {}

    def add_action(kinds: Iterable[str], action: NodeAction) -> None:
        for kind in kinds:
            actions[kind] = action

    add_action(language.ignored, _skip_node)
    add_action(language.types | language.type_names, assignments.visit_type)
    add_action(language.names, _visit_name)
    add_action([*language.members, *language.indexes], _visit_path)
    add_action(language.calls, SyntaxWalker.visit_call)
    add_action(language.texts, _visit_text)
    add_action(language.comments, _visit_comment)
    add_action(language.decorators, _visit_decorator)
    add_action(language.returns, _visit_return)
    add_action(language.throws, _visit_throw)
    add_action(language.awaits, _visit_await)
    add_action(language.yields, _visit_yield)
    add_action(language.removes, assignments.visit_removal)
    add_action(language.updates, assignments.visit_update)
    add_action(language.assigns, assignments.visit_assignment)
    add_action(language.closures, declarations.visit_closure)
    add_action(language.imports, _visit_import)
    for kind, operators in language.verdicts.items():
        actions[kind] = _make_predicate_action(operators, actions.get(kind, SyntaxWalker.visit_children))
    for kind, parts in language.choices.items():
        actions[kind] = _make_choice_action(language, kind, parts, actions.get(kind, SyntaxWalker.visit_children))
    for kind in [*language.carriers, *language.declares]:
        actions[kind] = partial(
            declarations.visit_declaration, otherwise=actions.get(kind, SyntaxWalker.visit_children)
        )
    for counter in ("breaks", "continues", "loops", "branches"):
        for kind in getattr(language, counter):
            parent, _, child = kind.rpartition(">")
            actions[child] = _make_counting_action(counter, parent, actions.get(child, SyntaxWalker.visit_children))
    add_action(language.cases, _visit_case)
    add_action(language.defaults, SyntaxWalker.visit_arm)
    for kind, hook in language.hooks.items():
        actions[kind] = _make_hook_action(hook, actions.get(kind, SyntaxWalker.visit_children))
    return WalkPlan(actions, _build_name_readers(language))


def _build_name_readers(language: Language) -> dict[str, NameReader]:
    """Return the name readers by kind; where a kind is in several rows, the last one here wins."""
    return {
        **{kind: _make_constant_reader(name) for kind, name in language.classes.items()},
        **dict.fromkeys(language.transparent, SyntaxWalker.read_wrapped_name),
        **dict.fromkeys(language.calls, SyntaxWalker.read_call_name),
        **dict.fromkeys(language.indexes, SyntaxWalker.read_index_name),
        **dict.fromkeys(language.members, SyntaxWalker.read_member_name),
        **dict.fromkeys(language.names | language.type_names, SyntaxWalker.read_plain_name),
    }


def _make_constant_reader(name: str) -> NameReader:
    return lambda _walk, _node, _flow: name


def _make_predicate_action(operators: KindSet, action: NodeAction) -> NodeAction:
    def visit_predicate(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
        if flow is not None and (not operators or _read_operator(walk.syntax, node) in operators):
            flow = ValueFlow()
        action(walk, node, flow)

    return visit_predicate


def _read_operator(syntax: SyntaxTree, node: int) -> str:
    """Return the text between two operands, or before a single one."""
    first_operand = node + 1
    second_operand = syntax.stops[first_operand] if first_operand < syntax.stops[node] else first_operand
    if second_operand < syntax.stops[node]:
        start, end = syntax.ends[first_operand], syntax.starts[second_operand]
    else:
        start, end = syntax.starts[node], syntax.starts[first_operand] if first_operand < second_operand else 0
    return syntax.data[start:end].strip().decode("utf-8", "replace")


def _make_choice_action(language: Language, kind: str, parts: tuple[str | int, ...], action: NodeAction) -> NodeAction:
    branches = kind in language.branches

    def visit_choice(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
        syntax = walk.syntax
        children = syntax.children(node)
        if flow is None:
            walk.visit_arms(children) if branches else action(walk, node, None)
            return
        # Text in one of several values is not a prefix of the others.
        flow.text = flow.text or CONTINUED_TEXT_MARK
        # `a ?: b` is `a` itself if `a` is truthy, so the condition is a value as well.
        has_alternative = syntax.find_child(node, "alternative") != NO_NODE
        is_own_condition = has_alternative and syntax.find_child(node, "consequence", "body") == NO_NODE
        for position, child in enumerate(children):
            is_selector = syntax.fields[child] in parts or syntax.kinds[child] in parts
            is_selector = (is_selector or position in parts) and not is_own_condition
            walk.visit(child, ValueFlow() if is_selector else flow)

    return visit_choice


def _make_counting_action(counter: str, parent: str, action: NodeAction) -> NodeAction:
    """Return an action that counts a node, if it is below a parent of that kind (empty for any)."""
    has_arms = counter in ("loops", "branches") and action is SyntaxWalker.visit_children

    def visit_counted(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
        frame = walk.frame
        if not parent or walk.syntax.kinds[walk.syntax.parents[node]] == parent:
            setattr(frame, counter, getattr(frame, counter) + 1)
        if has_arms and flow is None:
            walk.visit_arms(walk.syntax.children(node))
        else:
            action(walk, node, flow)

    return visit_counted


def _visit_case(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    walk.frame.branches += 1
    walk.visit_arm(node, flow)


def _make_hook_action(hook: NodeHook, action: NodeAction) -> NodeAction:
    def visit_hooked(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
        if hook(walk, node, flow) is False:
            action(walk, node, flow)

    return visit_hooked


def _skip_node(_walk: SyntaxWalker, _node: int, _flow: ValueFlow | None) -> None:
    pass


def _visit_decorator(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Record a decorator that is neither in a wrap nor before a declaration, where it is header."""
    syntax, language = walk.syntax, walk.language
    parent = syntax.parents[node]
    if syntax.kinds[parent] in language.wraps:
        return
    sibling = syntax.stops[node]
    while sibling < syntax.stops[parent] and (
        syntax.kinds[sibling] in language.decorators or syntax.kinds[sibling] in language.comments
    ):
        sibling = syntax.stops[sibling]
    if sibling >= syntax.stops[parent] or syntax.kinds[sibling] not in language.declares:
        walk.record_uses(node)


def _visit_name(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    name = walk.syntax.text(node)
    walk.frame.reads[name] = None
    if flow is not None:
        flow.names.append(name)


def _visit_path(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    if flow is None:
        walk.visit_as_statement(_visit_path, node)
        return
    dotted_name = walk.read_name(node, flow)
    if dotted_name:
        walk.frame.reads[dotted_name] = None
        flow.names.append(dotted_name)


def _visit_text(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    if flow is not None:
        if len(flow.text) < 120:
            if not flow.text and (flow.names or flow.calls):
                flow.text = CONTINUED_TEXT_MARK
            flow.text += walk.syntax.text(node)
        walk.visit_children(node, flow)


def _visit_comment(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    walk.comments.append((node, walk.frame))


def _visit_import(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    read_imports = walk.language.imports[walk.syntax.kinds[node]]
    walk.imports.update(dict.fromkeys(read_imports(walk.syntax, node)))


def _visit_return(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    syntax, language = walk.syntax, walk.language
    for child in syntax.children(node):
        if syntax.kinds[child] in language.comments:
            walk.visit(child, None)
            continue
        if syntax.kinds[assignments.unwrap_single(walk, child)] not in language.nothing and not walk.closure_depth:
            walk.frame.returns = True
            assignments.infer_type(walk, child, "return", "")
        walk.visit_returned(child)


def _visit_throw(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    is_first = True
    for child in walk.syntax.children(node):
        if is_first and walk.syntax.kinds[child] not in walk.language.comments:
            is_first = False
            name = _visit_and_name(walk, child, None)
            if name:
                walk.frame.throws[name] = None
        else:
            walk.visit(child, None)


def _visit_await(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    for child in walk.syntax.children(node):
        name = _visit_and_name(walk, child, flow)
        if name:
            walk.frame.awaits[name] = None


def _visit_and_name(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> str:
    """Visit an expression and return its callee if it is a call, else its name, if any."""
    language, kind = walk.language, walk.syntax.kinds[node]
    if kind in language.calls:
        return walk.visit_call(node, flow)
    if kind in language.members or kind in language.names:
        dotted_name = walk.read_name(node, flow)
        walk.frame.reads[dotted_name] = None
        if flow is not None:
            flow.names.append(dotted_name)
        return dotted_name
    walk.visit(node, flow)
    return ""


def _visit_yield(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    if not walk.closure_depth:
        walk.frame.is_generator = True
    if flow is not None:
        walk.visit_children(node, flow)
        return
    for child in walk.syntax.children(node):
        walk.visit_returned(child)
