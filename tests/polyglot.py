"""One small shop in every language, and what each filter must find in it.

The same declarations appear in each file of `fixtures/polyglot`, in the language's own way. A case
names an argument's value, a declaration that it must find and one that it must not; names are
compared without case and underscores, since languages spell them differently.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "fixtures" / "polyglot"

FILES = {
    "python": "desk.py",
    "javascript": "desk.js",
    "typescript": "desk.ts",
    "tsx": "desk.tsx",
    "go": "desk.go",
    "rust": "desk.rs",
    "java": "Desk.java",
    "c": "desk.c",
    "cpp": "desk.cpp",
    "csharp": "Desk.cs",
    "ruby": "desk.rb",
    "php": "desk.php",
    "kotlin": "Desk.kt",
    "swift": "Desk.swift",
    "shell": "desk.sh",
}


class Case(NamedTuple):
    """A value of an argument, what it must find and what it must leave out."""

    value: object
    found: str
    left_out: str


EVERYWHERE = {
    "type": Case("function,method", "tally", "orderdesk"),
    "calls": Case("lookup", "fetchorder", "plain"),
    "uses": Case("RATES", "tally", "plain"),
    "signature": Case("orderId", "fetchorder", "plain"),
    "param": Case("orderId", "fetchorder", "plain"),
    "decorator": Case("audited", "fetchorder", "plain"),
    "inferredType": Case("int", "tally", "plain"),
    "returnType": Case("Order", "fetchorder", "tally"),
    "throws": Case("OrderError", "fetchorder", "plain"),
    "reads": Case("rates", "tally", "plain"),
    "writes": Case("total", "tally", "plain"),
    "mutates": Case("cache[]", "tally", "plain"),
    "alias": Case("current=total", "tally", "plain"),
    "awaits": Case("lookup", "fetchorder", "tally"),
    "branchesMin": Case(2, "tally", "plain"),
    "loopsMin": Case(1, "tally", "plain"),
    "breaksMin": Case(1, "tally", "plain"),
    "continuesMin": Case(1, "tally", "plain"),
    "visibility": Case("private", "hidden", "plain"),
    "extends": Case("Counter", "orderdesk", "plain"),
    "async": Case(True, "fetchorder", "tally"),
    "generator": Case(True, "pages", "tally"),
    "returns": Case(True, "tally", "plain"),
    "risk": Case("command-exec", "runreport", "plain"),
    "riskTag": Case("command-exec", "runreport", "plain"),
    "riskSource": Case("req", "runreport", "plain"),
    "riskSink": Case("exec", "runreport", "plain"),
    "riskCategory": Case("command", "runreport", "plain"),
    "riskFlow": Case("->exec", "runreport", "plain"),
}
"""What a language does unless it is listed below."""

SNAKE: dict[str, Case | None] = {
    "param": Case("order_id", "fetchorder", "plain"),
    "signature": Case("order_id", "fetchorder", "plain"),
}
NO_RISK: dict[str, Case | None] = dict.fromkeys(
    ("risk", "riskTag", "riskSource", "riskSink", "riskCategory", "riskFlow")
)
NO_ASYNC: dict[str, Case | None] = dict.fromkeys(("async", "awaits"))
NO_GENERATOR: dict[str, Case | None] = {"generator": None}

PER_LANGUAGE: dict[str, dict[str, Case | None]] = {
    "python": SNAKE
    | {
        "import": Case("flask", "tally", ""),
        "visibility": Case("protected", "hidden", "plain"),
        "riskSource": Case("request.args", "runreport", "plain"),
        "riskSink": Case("subprocess", "runreport", "plain"),
        "riskFlow": Case("->subprocess", "runreport", "plain"),
    },
    "javascript": {
        "import": Case("express", "tally", ""),
        "inferredType": Case("number", "tally", "plain"),
        "returnType": None,
        "riskSource": Case("req.query", "runreport", "plain"),
    },
    "typescript": {
        "import": Case("child_process", "tally", ""),
        "inferredType": Case("number", "tally", "plain"),
        "riskSource": Case("req.query", "runreport", "plain"),
    },
    "tsx": {
        "import": Case("react", "tally", ""),
        "inferredType": Case("number", "tally", "plain"),
        "extends": Case("Component", "orderdesk", "plain"),
        "risk": Case("xss", "runreport", "plain"),
        "riskTag": Case("xss", "runreport", "plain"),
        "riskSource": Case("location", "runreport", "plain"),
        "riskSink": Case("innerHTML", "runreport", "plain"),
        "riskCategory": Case("xss", "runreport", "plain"),
        "riskFlow": Case("location->", "runreport", "plain"),
    },
    "go": NO_ASYNC
    | NO_GENERATOR
    | {
        "import": Case("net/http", "tally", ""),
        "uses": Case("Rates", "tally", "plain"),
        "decorator": None,
        "visibility": Case("package", "hidden", "plain"),
        "riskSource": Case("query", "runreport", "plain"),
    },
    "rust": SNAKE
    | NO_RISK
    | NO_GENERATOR
    | {
        "import": Case("std::collections::HashMap", "tally", ""),
        "throws": Case("panic", "fetchorder", "plain"),
        "extends": Case("Counter", "orderdesk", "tally"),
    },
    "java": NO_ASYNC
    | NO_GENERATOR
    | {
        "import": Case("java.util", "tally", ""),
        "riskSource": Case("getParameter", "runreport", "plain"),
        "riskFlow": Case("->Runtime.exec", "runreport", "plain"),
    },
    "c": SNAKE
    | NO_RISK
    | NO_ASYNC
    | NO_GENERATOR
    | {
        "import": Case("stdio.h", "tally", ""),
        "decorator": None,
        "throws": None,
        "extends": None,
        "visibility": Case("static", "hidden", "plain"),
    },
    "cpp": NO_RISK | NO_ASYNC | NO_GENERATOR | {"import": Case("vector", "tally", "")},
    "csharp": NO_RISK
    | {
        "import": Case("System.Diagnostics", "tally", ""),
        "calls": Case("Lookup", "fetchorder", "plain"),
        "uses": Case("Rates", "tally", "plain"),
    },
    "ruby": SNAKE
    | NO_RISK
    | NO_ASYNC
    | NO_GENERATOR
    | {
        "import": Case("json", "tally", ""),
        "decorator": None,
        "returnType": None,
    },
    "php": NO_ASYNC
    | {
        "import": Case("Shop\\Parts\\Counter", "tally", ""),
        "uses": Case("$rates", "tally", "plain"),
        "param": Case("$orderId", "fetchorder", "plain"),
        "alias": Case("$current=$total", "tally", "plain"),
        "riskSource": Case("_GET", "runreport", "plain"),
    },
    "kotlin": NO_RISK
    | NO_GENERATOR
    | {
        "import": Case("kotlinx.coroutines", "tally", ""),
        "uses": Case("rates", "tally", "plain"),
    },
    "swift": NO_RISK
    | NO_GENERATOR
    | {"import": Case("Foundation", "tally", ""), "uses": Case("rates", "tally", "plain")},
    "shell": NO_RISK
    | NO_ASYNC
    | NO_GENERATOR
    | {
        "import": Case("./counter.sh", "tally", ""),
        "type": Case("function", "tally", ""),
        **dict.fromkeys(
            ("signature", "param", "decorator", "inferredType", "returnType", "throws")
        ),
        **dict.fromkeys(("visibility", "extends", "returns")),
    },
}
"""Its own values, and None for what the language does not have."""


def cases() -> Iterator[tuple[str, str, Case]]:
    """Every language, argument and case."""
    for lang, own in PER_LANGUAGE.items():
        for argument, case in {**EVERYWHERE, **own}.items():
            if case is not None:
                yield lang, argument, case


def plain(name: str) -> str:
    """The last part of a name, without what languages spell differently."""
    return name.rsplit(".", 1)[-1].replace("_", "").lstrip("#$").lower()
