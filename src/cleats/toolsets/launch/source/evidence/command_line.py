"""The command line of a Python package: arguments and their help as the source declares them.

Read from the syntax of the modules that the commands run: calls of argparse, and decorators of click
and typer. Nothing is imported or run.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from cleats.toolsets.launch.source.api.docstrings import extract_first_sentence
from cleats.toolsets.launch.source.checkout.safe_parsing import parse_python, walk_python
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence.ledger import Citation, ClaimLedger
from cleats.toolsets.launch.source.manifests.model import LocatedValue
from cleats.toolsets.launch.source.text import english

MAX_COMMAND_ARGUMENTS: Final = 60
"""Arguments of a command at most; a longer list is a manual of its own."""

_DEFAULT_NOTE_PATTERN: Final = re.compile(r"\s*[(\[]?(?:default|defaults to)\W*%\(default\)\w[)\]]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CommandArgument:
    """An argument, an option or a subcommand, with its help and its place."""

    name: str
    help_text: str
    path: str
    line: int
    end: int


def claim_commands(
    ledger: ClaimLedger, product: str, tree: CheckoutTree, commands: tuple[LocatedValue, ...], module_paths: list[str]
) -> list[dict[str, Any]]:
    """Claim the commands that the installation provides, and their arguments."""
    entries: list[dict[str, Any]] = []
    for command in commands:
        text = f"Installing {product} provides the `{command.value}` command."
        citation = Citation(command.path, command.line, command.line, command.basis)
        entry: dict[str, Any] = {"name": command.value, "claim_id": ledger.add(text, "other", [citation])}
        arguments = list(_iter_arguments(tree, _find_module(tree, command.detail, module_paths)))
        entry["arguments"] = [
            {"name": argument.name, "help": argument.help_text, "claim_id": _claim_argument(ledger, command, argument)}
            for argument in arguments[:MAX_COMMAND_ARGUMENTS]
        ]
        entries.append(entry)
    return entries


def _claim_argument(ledger: ClaimLedger, command: LocatedValue, argument: CommandArgument) -> str:
    text = f"The `{command.value}` command has the argument `{argument.name}`: {argument.help_text}"
    citation = Citation(argument.path, argument.line, argument.end, "source_code")
    return ledger.add(text, "other", [citation])


def _find_module(tree: CheckoutTree, target: str, module_paths: list[str]) -> str:
    """Return the file of the module that a command runs, such as `package.cli:main`."""
    name = target.partition(":")[0].strip()
    parts = name.replace(".", "/")
    folders = {path.rpartition("/")[0].removesuffix(name.partition(".")[0]) for path in module_paths}
    endings = (f"{parts}.py", f"{parts}/__init__.py")
    candidates = [f"{folder}{ending}" for folder in sorted({"", "src/", *folders}) for ending in endings]
    path = next((path for path in candidates if path in tree.path_set), "")
    return _follow_import(tree, path, target.partition(":")[2].strip())


def _follow_import(tree: CheckoutTree, path: str, function: str) -> str:
    """Return the file that defines the function of a command, which `__main__.py` often only imports."""
    module = parse_python(tree.read_text(path)) if path and function else None
    for node in module.body if module else ():
        if not isinstance(node, ast.ImportFrom) or node.level != 1 or node.module is None:
            continue
        if any((alias.asname or alias.name) == function for alias in node.names):
            folder = path.rpartition("/")[0]
            source = f"{folder}/{node.module.replace('.', '/')}.py".removeprefix("/")
            return source if source in tree.path_set else path
    return path


def _iter_arguments(tree: CheckoutTree, path: str) -> Iterator[CommandArgument]:
    text = tree.read_text(path) if path else None
    module = parse_python(text)
    if module is None:
        return
    found: dict[str, CommandArgument] = {}
    subcommands = _find_subparsers(module)
    for node in walk_python(text):
        arguments: Iterator[CommandArgument] = iter(())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            arguments = _read_argparse_call(node, node.func, subcommands)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = _read_decorated_function(node)
        for argument in arguments:
            found.setdefault(argument.name, replace(argument, path=path))
    yield from sorted(found.values(), key=lambda argument: argument.line)


def _find_subparsers(module: ast.Module) -> dict[str, str]:
    """Return the names of subcommands by the variable that holds their parser."""
    return {
        target.id: str(node.value.args[0].value)
        for node in ast.walk(module)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _get_method(node.value) == "add_parser"
        if node.value.args and isinstance(node.value.args[0], ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _read_argparse_call(
    node: ast.Call, method: ast.Attribute, subcommands: dict[str, str]
) -> Iterator[CommandArgument]:
    if method.attr not in ("add_argument", "add_parser"):
        return
    names = _list_names(node)
    help_text = _read_help(node)
    owner = method.value.id if isinstance(method.value, ast.Name) else ""
    prefix = f"{subcommands[owner]} " if owner in subcommands and method.attr == "add_argument" else ""
    if names and help_text:
        yield CommandArgument(prefix + ", ".join(names), help_text, "", node.lineno, node.end_lineno or node.lineno)


def _read_decorated_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[CommandArgument]:
    calls = [decorator for decorator in node.decorator_list if isinstance(decorator, ast.Call)]
    is_command = any(_get_method(call) in ("command", "group") for call in calls)
    if not is_command:
        return
    own_names = [name for call in calls if _get_method(call) == "command" for name in _list_names(call)]
    command = (own_names or [node.name.replace("_", "-")])[0]
    is_subcommand = any(
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id not in ("click", "typer")
        for call in calls
    )
    purpose = _format_help(extract_first_sentence(ast.get_docstring(node) or ""))
    if is_subcommand and purpose:
        yield CommandArgument(command, purpose, "", node.lineno, max(node.lineno, node.body[0].end_lineno or 0))
    for call in calls:
        if _get_method(call) == "option" and (names := _list_names(call)) and (help_text := _read_help(call)):
            prefix = f"{command} " if is_subcommand else ""
            name = prefix + ", ".join(item for item in names if item.startswith("-"))
            yield CommandArgument(name, help_text, "", call.lineno, call.end_lineno or call.lineno)


def _get_method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _list_names(call: ast.Call) -> list[str]:
    values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "name")]
    return [item.value for item in values if isinstance(item, ast.Constant) and isinstance(item.value, str)]


def _read_help(call: ast.Call) -> str:
    value = next((keyword.value for keyword in call.keywords if keyword.arg == "help"), None)
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return _format_help(value.value) if is_text and isinstance(value, ast.Constant) else ""


def _format_help(text: object) -> str:
    """Return a help text as a sentence; "" for one that cannot stand on a page."""
    flat = _DEFAULT_NOTE_PATTERN.sub("", " ".join(str(text).split())).replace("%%", "%").rstrip(". ")
    sentence = f"{flat[:1].upper()}{flat[1:]}."
    return sentence if english.is_quotable(sentence, is_item=True) and "%(" not in sentence else ""
