"""Complete programs of the catalogue, run behind the fence, and what their ends prove.

Only code that can be a whole program is run: it imports the product and defines every name that it uses. A program
passes if it ends with exit code 0. It fails only if the reason is its own: one that asks for the network, a file, an
input or a module that the fence does not have proves nothing, and counts as inconclusive.
"""

import ast
import builtins
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cleats.system.processes.fenced_command import WORK_FOLDER, FencedResult
from cleats.toolsets.launch.source.checkout.safe_parsing import parse_python

PASSED, FAILED, INCONCLUSIVE, NOT_RUN = "passed", "failed", "inconclusive", "not_run"

SHORT_RUN_SECONDS: Final = 10.0
"""The border between the two durations that are recorded; exact ones would differ in every run."""

MAX_REASON_CHARACTERS: Final = 200

_MODULE_NAMES: Final = frozenset({*dir(builtins), "__file__", "__name__", "__doc__", "__builtins__", "__spec__"})

_NEEDS: Final = tuple(
    (re.compile(error_pattern, re.MULTILINE), need)
    for error_pattern, need in (
        (
            r"^ModuleNotFoundError: No module named '([^']+)'",
            "It needs the module {}, which the package does not bring.",
        ),
        (r"\bError(?: \[\w+\])?: Cannot find (?:module|package) '([^']+)'", "It needs the package {}."),
        (
            rf"^FileNotFoundError: .*No such file or directory: '(?:{WORK_FOLDER}/)?([^'/][^']*)'",
            "It needs the file {}.",
        ),
        (rf"\bError: ENOENT: .*'(?:{WORK_FOLDER}/)?([^'/][^']*)'", "It needs the file {}."),
        (r"^NameError: name '(\w+)' is not defined", "It is a part of a program: it does not define `{}`."),
        (r"^ReferenceError: (\w+) is not defined", "It is a part of a program: it does not define `{}`."),
    )
)
"""Errors that name what a program does not have."""

_ERROR_LINE_PATTERN: Final = re.compile(r"(?:Uncaught )?[\w.]*(?:Error|Exception|Warning|Exit|Interrupt)\b[^:]*: ")
_INPUT_PATTERN: Final = re.compile(r"\binput\(|\bstdin\b|\bgetpass\b")
_LIMIT_REASONS: Final = {
    "time": "It did not end in time.",
    "memory": "It used more memory than it may.",
    "processes": "It started more processes than it may.",
}
_CPU_SIGNALS: Final = (-24, -9)
"""The kernel ends a program at its CPU limit with SIGXCPU, then with SIGKILL."""


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What is known about one program."""

    outcome: str
    reason: str = ""
    """Why it has not passed, in one sentence."""
    exit_code: int | None = None
    duration: str = ""

    @property
    def runnable(self) -> bool | str:
        """Whether it can be run, as the catalogue says it."""
        return {PASSED: True, FAILED: False}.get(self.outcome, "unknown")

    def as_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"outcome": self.outcome}
        if self.reason:
            document["reason"] = self.reason
        if self.exit_code is not None:
            document |= {"exit_code": self.exit_code, "duration": self.duration}
        return document


def find_incompleteness(code: str) -> str:
    """Return why Python code is not a whole program, or an empty text."""
    module = parse_python(code)
    if module is None:
        return "It does not parse."
    try:
        compile(code, "program.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"It is a part of a program: {getattr(error, 'msg', None) or error}."
    nodes = list(ast.walk(module))
    if any(isinstance(node, ast.ImportFrom) and node.level for node in nodes):
        return "It is a part of a package: it has a relative import."
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in nodes):
        return ""  # any name may be defined
    unknown_names = sorted(_list_read_names(nodes) - _list_bound_names(nodes) - _MODULE_NAMES)
    return f"It is a part of a program: it does not define `{unknown_names[0]}`." if unknown_names else ""


def _list_read_names(nodes: list[ast.AST]) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}


def _list_bound_names(nodes: list[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name.split(".")[0] for alias in aliases}
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.MatchMapping(rest=str(name)):
                names.add(name)
    return names


def judge_result(result: FencedResult, code: str, seconds: float) -> ProgramRun:
    """Return what the end of a program proves."""
    duration = f"{'under' if seconds < SHORT_RUN_SECONDS else 'over'} {SHORT_RUN_SECONDS:g} seconds"
    if result.exit_code == 0 and not result.limit:
        return ProgramRun(PASSED, "", 0, duration)
    stderr = result.stderr.decode(errors="replace")
    if need := _find_unmet_need(result, stderr, code):
        return ProgramRun(INCONCLUSIVE, need, result.exit_code, duration)
    is_slow = not result.limit and result.exit_code in _CPU_SIGNALS
    reason = _LIMIT_REASONS.get("time" if is_slow else result.limit) or _describe_error(stderr, result.exit_code)
    return ProgramRun(FAILED, reason[:MAX_REASON_CHARACTERS], result.exit_code, duration)


def _find_unmet_need(result: FencedResult, stderr: str, code: str) -> str:
    """Return what a program asked for that only its user has; the program itself must name it."""
    if result.limit == "listening":
        return "It waits for connections."
    if result.network_attempts:
        return "It needs the network, from which it was cut off."
    for error_pattern, need in _NEEDS:
        error = error_pattern.search(stderr)
        if error and re.search(rf"(?<!\w){re.escape(error[1])}(?!\w)", code):
            return need.format(error[1])
    return "It waits for input." if "EOFError" in stderr and _INPUT_PATTERN.search(code) else ""


def find_error_line(output: str) -> str:
    """Return the line of an output that names the last error, as Python and Node write it."""
    lines = [line.strip() for line in output.splitlines()]
    return next((line for line in reversed(lines) if _ERROR_LINE_PATTERN.match(line)), "")


def _describe_error(stderr: str, exit_code: int) -> str:
    ended = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
    error = find_error_line(stderr) or stderr.strip().rpartition("\n")[2].strip()
    return f"It ended with {ended}: {error}" if error else f"It ended with {ended}."


def add_run(snippet: Mapping[str, Any], run: ProgramRun, log_path: str = "") -> dict[str, Any]:
    """Return an entry of the catalogue with the result of its program."""
    validation = {**snippet["validation"], "runnable_ok": run.runnable, **({"log_path": log_path} if log_path else {})}
    return {**snippet, "validation": validation, "run": run.as_json()}
