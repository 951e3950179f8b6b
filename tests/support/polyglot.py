"""One small shop in every language, and the declarations that each filter must find in it.

The same declarations appear in each file of `fixtures/polyglot`, written in the style of the
language. A case has the value of an argument, a declaration that it must find and one that it must
not find; names are compared without case and underscores, since languages spell them differently.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tests.support.paths import TESTS_FOLDER

POLYGLOT_FOLDER = TESTS_FOLDER / "fixtures" / "polyglot"

FILES_BY_LANGUAGE = {
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


class FilterCase(NamedTuple):
    """A value of an argument, a name that it must find and a name that it must not find."""

    value: object
    found: str
    left_out: str


COMMON_CASES = {
    "type": FilterCase("function,method", "tally", "orderdesk"),
    "calls": FilterCase("lookup", "fetchorder", "plain"),
    "uses": FilterCase("RATES", "tally", "plain"),
    "signature": FilterCase("orderId", "fetchorder", "plain"),
    "param": FilterCase("orderId", "fetchorder", "plain"),
    "decorator": FilterCase("audited", "fetchorder", "plain"),
    "inferredType": FilterCase("int", "tally", "plain"),
    "returnType": FilterCase("Order", "fetchorder", "tally"),
    "throws": FilterCase("OrderError", "fetchorder", "plain"),
    "reads": FilterCase("rates", "tally", "plain"),
    "writes": FilterCase("total", "tally", "plain"),
    "mutates": FilterCase("cache[]", "tally", "plain"),
    "alias": FilterCase("current=total", "tally", "plain"),
    "awaits": FilterCase("lookup", "fetchorder", "tally"),
    "branchesMin": FilterCase(2, "tally", "plain"),
    "loopsMin": FilterCase(1, "tally", "plain"),
    "breaksMin": FilterCase(1, "tally", "plain"),
    "continuesMin": FilterCase(1, "tally", "plain"),
    "visibility": FilterCase("private", "hidden", "plain"),
    "extends": FilterCase("Counter", "orderdesk", "plain"),
    "async": FilterCase(True, "fetchorder", "tally"),
    "generator": FilterCase(True, "pages", "tally"),
    "returns": FilterCase(True, "tally", "plain"),
    "risk": FilterCase("command-exec", "runreport", "plain"),
    "riskTag": FilterCase("command-exec", "runreport", "plain"),
    "riskSource": FilterCase("req", "runreport", "plain"),
    "riskSink": FilterCase("exec", "runreport", "plain"),
    "riskCategory": FilterCase("command", "runreport", "plain"),
    "riskFlow": FilterCase("->exec", "runreport", "plain"),
}
"""The cases of every language, unless the language overrides them below."""

SNAKE_CASE_NAMES: dict[str, FilterCase | None] = {
    "param": FilterCase("order_id", "fetchorder", "plain"),
    "signature": FilterCase("order_id", "fetchorder", "plain"),
}
WITHOUT_RISK: dict[str, FilterCase | None] = dict.fromkeys(
    ("risk", "riskTag", "riskSource", "riskSink", "riskCategory", "riskFlow")
)
WITHOUT_ASYNC: dict[str, FilterCase | None] = dict.fromkeys(("async", "awaits"))
WITHOUT_GENERATOR: dict[str, FilterCase | None] = {"generator": None}

CASES_BY_LANGUAGE: dict[str, dict[str, FilterCase | None]] = {
    "python": SNAKE_CASE_NAMES
    | {
        "import": FilterCase("flask", "tally", ""),
        "visibility": FilterCase("protected", "hidden", "plain"),
        "riskSource": FilterCase("request.args", "runreport", "plain"),
        "riskSink": FilterCase("subprocess", "runreport", "plain"),
        "riskFlow": FilterCase("->subprocess", "runreport", "plain"),
    },
    "javascript": {
        "import": FilterCase("express", "tally", ""),
        "inferredType": FilterCase("number", "tally", "plain"),
        "returnType": None,
        "riskSource": FilterCase("req.query", "runreport", "plain"),
    },
    "typescript": {
        "import": FilterCase("child_process", "tally", ""),
        "inferredType": FilterCase("number", "tally", "plain"),
        "riskSource": FilterCase("req.query", "runreport", "plain"),
    },
    "tsx": {
        "import": FilterCase("react", "tally", ""),
        "inferredType": FilterCase("number", "tally", "plain"),
        "extends": FilterCase("Component", "orderdesk", "plain"),
        "risk": FilterCase("xss", "runreport", "plain"),
        "riskTag": FilterCase("xss", "runreport", "plain"),
        "riskSource": FilterCase("location", "runreport", "plain"),
        "riskSink": FilterCase("innerHTML", "runreport", "plain"),
        "riskCategory": FilterCase("xss", "runreport", "plain"),
        "riskFlow": FilterCase("location->", "runreport", "plain"),
    },
    "go": WITHOUT_ASYNC
    | WITHOUT_GENERATOR
    | {
        "import": FilterCase("net/http", "tally", ""),
        "uses": FilterCase("Rates", "tally", "plain"),
        "decorator": None,
        "visibility": FilterCase("package", "hidden", "plain"),
        "riskSource": FilterCase("query", "runreport", "plain"),
    },
    "rust": SNAKE_CASE_NAMES
    | WITHOUT_RISK
    | WITHOUT_GENERATOR
    | {
        "import": FilterCase("std::collections::HashMap", "tally", ""),
        "throws": FilterCase("panic", "fetchorder", "plain"),
        "extends": FilterCase("Counter", "orderdesk", "tally"),
    },
    "java": WITHOUT_ASYNC
    | WITHOUT_GENERATOR
    | {
        "import": FilterCase("java.util", "tally", ""),
        "riskSource": FilterCase("getParameter", "runreport", "plain"),
        "riskFlow": FilterCase("->Runtime.exec", "runreport", "plain"),
    },
    "c": SNAKE_CASE_NAMES
    | WITHOUT_RISK
    | WITHOUT_ASYNC
    | WITHOUT_GENERATOR
    | {
        "import": FilterCase("stdio.h", "tally", ""),
        "decorator": None,
        "throws": None,
        "extends": None,
        "visibility": FilterCase("static", "hidden", "plain"),
    },
    "cpp": WITHOUT_RISK | WITHOUT_ASYNC | WITHOUT_GENERATOR | {"import": FilterCase("vector", "tally", "")},
    "csharp": WITHOUT_RISK
    | {
        "import": FilterCase("System.Diagnostics", "tally", ""),
        "calls": FilterCase("Lookup", "fetchorder", "plain"),
        "uses": FilterCase("Rates", "tally", "plain"),
    },
    "ruby": SNAKE_CASE_NAMES
    | WITHOUT_RISK
    | WITHOUT_ASYNC
    | WITHOUT_GENERATOR
    | {
        "import": FilterCase("json", "tally", ""),
        "decorator": None,
        "returnType": None,
    },
    "php": WITHOUT_ASYNC
    | {
        "import": FilterCase("Shop\\Parts\\Counter", "tally", ""),
        "uses": FilterCase("$rates", "tally", "plain"),
        "param": FilterCase("$orderId", "fetchorder", "plain"),
        "alias": FilterCase("$current=$total", "tally", "plain"),
        "riskSource": FilterCase("_GET", "runreport", "plain"),
    },
    "kotlin": WITHOUT_RISK
    | WITHOUT_GENERATOR
    | {
        "import": FilterCase("kotlinx.coroutines", "tally", ""),
        "uses": FilterCase("rates", "tally", "plain"),
    },
    "swift": WITHOUT_RISK
    | WITHOUT_GENERATOR
    | {"import": FilterCase("Foundation", "tally", ""), "uses": FilterCase("rates", "tally", "plain")},
    "shell": WITHOUT_RISK
    | WITHOUT_ASYNC
    | WITHOUT_GENERATOR
    | {
        "import": FilterCase("./counter.sh", "tally", ""),
        "type": FilterCase("function", "tally", ""),
        **dict.fromkeys(("signature", "param", "decorator", "inferredType", "returnType", "throws")),
        **dict.fromkeys(("visibility", "extends", "returns")),
    },
}
"""Cases that differ by language; None for what the language does not have."""


def iterate_cases() -> Iterator[tuple[str, str, FilterCase]]:
    """Iterate over every language, argument and case."""
    for lang, overrides in CASES_BY_LANGUAGE.items():
        for argument, case in {**COMMON_CASES, **overrides}.items():
            if case is not None:
                yield lang, argument, case


def normalize_name(name: str) -> str:
    """Return the last part of a name in a spelling that all languages share."""
    return name.rsplit(".", 1)[-1].replace("_", "").lstrip("#$").lower()
