"""Text about tasks: the first program, the guide through all of them, the page of one."""

import ast
import re
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.drafting.context import Context
from cleats.toolsets.launch.drafting.forms import claims, is_short, plain, shown
from cleats.toolsets.launch.drafting.material import Material, Snippet
from cleats.toolsets.launch.drafting.symbols import table
from cleats.toolsets.launch.gates.wording import negated
from cleats.toolsets.launch.source import programs

STARTERS = (
    "quickstart",
    "quick-start",
    "getting-started",
    "basic-usage",
    "basic-example",
    "readme",
)
"""Tags of code that is written for somebody who has just installed the product, the best first."""

BEGIN = "getting-started"
"""The page for beginners."""

PLACE = re.compile(r"^The (?:repository|readme|documentation) of .* (?:example|code)\b")
"""A claim that only says where code stands."""


def first_example(context: Context) -> str:
    """The code to begin with."""
    found = _starters(context)
    return shown(found[0]) if found else ""


def more_examples(context: Context) -> str:
    """What a beginner reads after it."""
    found = [each for each in _starters(context)[1:] if set(STARTERS[:-1]) & set(each.tags)]
    return shown(*found[:2])


def _starters(context: Context) -> list[Snippet]:
    """Code to begin with, the best first; something short wherever there is any."""
    material = context.material
    tagged = [each for tag in STARTERS for each in material.tagged((tag,), material.language)]
    rest = [each for each in material.snippets if each.language == material.language]
    found = list(dict.fromkeys([*tagged, *rest]))
    return [each for each in found if is_short(each)] or found[:1]


def workflows(context: Context) -> str:
    """A section for each task.

    Code for beginners has a page of its own; of the rest there is what a page has room for.
    """
    material = context.material
    begin = context.section.get(BEGIN)
    if not material.workflows:
        return _examples(context)
    parts: list[str] = []
    lines = 80
    seen: set[str] = set()
    own = {each.title: each for each in context.children}
    for flow in material.workflows:
        if is_starter(flow) and begin is not None:
            parts.append(f"## {flow['title']}\n\n[{begin.title}]({begin.url}) goes through it.")
            continue
        code = [
            each
            for each in flow_snippets(material, flow)
            if each.snippet_id not in seen and is_short(each)
        ][:1]
        lead = _flow_lead(context, flow)
        blocks = [lead, shown(*code, said=lead)]
        if page := own.get(plain(flow["title"])):
            blocks.append(f"[{page.title}]({page.url}) shows more of it.")
        body = "\n\n".join(block for block in blocks if block)
        if not code or lines + body.count("\n") > context.max_lines:
            body = claims(context, material.known(flow["claim_ids"])[:2])
        if body:
            seen.update(each.snippet_id for each in code)
            parts.append(f"## {flow['title']}\n\n{body}")
            lines += body.count("\n") + 4
    if begin is not None and all(is_starter(flow) for flow in material.workflows):
        parts.append(_examples(context))  # a guide that only leads to another page is none
    return "\n\n".join(part for part in parts if part)


def code_note(context: Context) -> str:
    """Where the code of the guide is from, where it has any."""
    if "```" not in workflows(context):
        return ""
    return "All code is taken from its repository; pieces from one file can build on each other."


def _examples(context: Context) -> str:
    """What a guide shows of a product that names no tasks: its code, or else what it can do."""
    material = context.material
    first = _starters(context)[:1]
    found = [
        each
        for each in material.snippets
        if each.language == material.language and each not in first and is_short(each)
    ]
    if found:
        return f"## Examples\n\n{shown(*found[: context.items])}"
    features = claims(context, material.group("key_features")[: context.items])
    names = table(material, material.symbols, context.items, "What it is")
    parts = (("What it does", features), ("Names to begin with", names))
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in parts if text)


def is_starter(flow: Mapping[str, Any]) -> bool:
    """Whether a task is to begin at all."""
    return bool(set(STARTERS[:-1]) & {str(flow["workflow_tag"]), *flow["snippet_tags"]})


def _flow_lead(context: Context, flow: Mapping[str, Any]) -> str:
    """What a task is about: its own words where its evidence holds them, else its claims.

    A claim that only says where the code stands is left out: the code says it, too.
    """
    material = context.material
    ids = material.known(flow["claim_ids"])
    telling = [each for each in ids if not PLACE.search(material.claims[each]["claim_text"])]
    if telling or not ids:
        return claims(context, telling[:4])
    description = str(flow.get("description") or "")
    denies = negated(description) != negated(material.claims[ids[0]]["claim_text"])
    usable = description and "{{" not in description and not denies
    return material.say(ids[0], description) if usable else ""


def flow_snippets(material: Material, flow: Mapping[str, Any]) -> list[Snippet]:
    """The code of a task, the best first."""
    by_id = {each.snippet_id: each for each in material.snippets}
    named = [
        by_id[step["snippet_id"]]
        for step in flow.get("steps", ())
        if step.get("snippet_id") in by_id
    ]
    found = dict.fromkeys([*named, *material.tagged(flow["snippet_tags"])])
    own = [each for each in found if each.language == material.language]
    return own or list(found)  # commands are for those who have no code to read


def subject_title(context: Context) -> str:
    """The name of what the page is about."""
    return context.subject.title if context.subject else ""


def subject_lead(context: Context) -> str:
    """What the page is about, in statements."""
    if context.subject is None:
        return ""
    for flow in context.material.workflows:
        if flow["workflow_tag"] == context.subject.key:
            return _flow_lead(context, flow)
    return claims(context, context.material.known(context.subject.claim_ids)[: context.items])


def subject_code(context: Context) -> str:
    """Its code."""
    snippets = context.subject.snippets if context.subject else ()
    return shown(*snippets)


def subject_symbols(context: Context) -> str:
    """The names of the product that its code uses."""
    if context.subject is None:
        return ""
    used = used_names("\n".join(each.code for each in context.subject.snippets))
    found = [each for each in context.material.symbols if each["name"] in used]
    return table(context.material, found, context.rows, "What it is")


def used_names(code: str) -> frozenset[str]:
    """The full names that Python code imports or reaches through a module that it imports.

    A word in the code proves nothing: `console.print` is not the `print` of the package.
    """
    tree = programs.parse(code)
    if tree is None:
        return frozenset()
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                known[name.asname or name.name.split(".")[0]] = (
                    name.name if name.asname else name.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            known |= {n.asname or n.name: f"{node.module}.{n.name}" for n in node.names}
    found = set(known.values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (dotted := _dotted(node)):
            first, _, rest = dotted.partition(".")
            if first in known:
                found.add(f"{known[first]}.{rest}")
    return frozenset(found)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (above := _dotted(node.value)):
        return f"{above}.{node.attr}"
    return ""
