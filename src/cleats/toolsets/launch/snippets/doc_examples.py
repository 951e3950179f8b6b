"""Examples in the documentation of code: test functions of Go, and code in comments of other languages.

Each language has a place for examples that its tools check or show. Lines that the tools of a language hide
(Rust's `# use ...`) are left out.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from textwrap import dedent
from typing import Final, NamedTuple

from cleats.toolsets.launch.source.checkout.tree import CheckoutTree


class DocExample(NamedTuple):
    """Code in the documentation of a name, with the lines that hold it."""

    code: str
    path: str
    start: int
    end: int
    title: str


MAX_DOC_EXAMPLES: Final = 40
"""Examples of a package at most; a page shows a few."""

_MIN_CODE_LINES: Final = 2
"""A shorter example shows a call, which the API overview does as well."""

_GO_EXAMPLE_PATTERN: Final = re.compile(
    r"^func Example(?P<name>\w*)\(\) \{\n(?P<body>.*?)^\}", re.MULTILINE | re.DOTALL
)
_RUST_BLOCK_PATTERN: Final = re.compile(r"(?:^[ \t]*//[/!][^\n]*\n)+|^/\*!.*?\*/", re.MULTILINE | re.DOTALL)
_RUST_INFO_WORDS: Final = frozenset({"rust", "no_run", "should_panic", "edition2018", "edition2021", "edition2024"})
_SCRIPT_BLOCK_PATTERN: Final = re.compile(r"/\*\*.*?\*/", re.DOTALL)
_SCRIPT_EXAMPLE_PATTERN: Final = re.compile(r"^@example\b[^\n]*\n(?P<body>.*?)(?=^@\w|\Z)", re.MULTILINE | re.DOTALL)
_SCRIPT_CODE_PATTERN: Final = re.compile(r"```(?:js|ts|javascript|typescript|jsx|tsx)?\n(?P<body>.*?)```", re.DOTALL)
_JAVA_CODE_PATTERN: Final = re.compile(
    r"<pre>\s*(?:<code>)?\s*(?:\{@code[ \n](?P<code>.*?)\}|(?P<plain>.*?))\s*(?:</code>)?\s*</pre>",
    re.DOTALL,
)
_CSHARP_BLOCK_PATTERN: Final = re.compile(r"(?:^[ \t]*///[^\n]*\n)+", re.MULTILINE)
_CSHARP_CODE_PATTERN: Final = re.compile(r"<code(?:\s[^>]*)?>(?P<body>.*?)</code>", re.DOTALL)


def find_doc_examples(tree: CheckoutTree, paths: list[str], language: str) -> list[DocExample]:
    """Return the examples in files of a package, those of earlier files first."""
    finder = _FINDERS.get(language)
    if finder is None:
        return []
    if language == "go":
        folders = {str(PurePosixPath(path).parent) for path in paths}
        paths = [
            path for path in tree.paths if path.endswith("_test.go") and str(PurePosixPath(path).parent) in folders
        ]
    examples = [example for path in paths for example in finder(path, tree.read_text(path) or "")]
    return [example for example in examples if example.code.count("\n") >= _MIN_CODE_LINES][:MAX_DOC_EXAMPLES]


def _find_go_examples(path: str, text: str) -> Iterator[DocExample]:
    """Yield the bodies of example functions of an outer package, which name the package as programs do."""
    if not re.search(r"^package \w+_test$", text, re.MULTILINE):
        return
    for match in _GO_EXAMPLE_PATTERN.finditer(text):
        title = match["name"].split("_")[0]
        yield _locate(path, text, match, dedent(match["body"]), title)


def _find_rust_examples(path: str, text: str) -> Iterator[DocExample]:
    for block in _RUST_BLOCK_PATTERN.finditer(text):
        first_line = text.count("\n", 0, block.start()) + 1
        lines = [re.sub(r"^[ \t]*//[/!] ?", "", line) for line in block[0].rstrip("\n").split("\n")]
        start = 0
        for number, line in enumerate(lines):
            if not line.lstrip().startswith("```"):
                continue
            if not start:
                start, info = number + 1, line.strip().strip("`")
                continue
            is_rust = set(filter(None, re.split(r"[,\s]+", info))) <= _RUST_INFO_WORDS
            shown = [item for item in lines[start:number] if not re.match(r"\s*#($|\s)", item)]
            if is_rust:
                code = "\n".join(item.replace("##", "#", 1) if item.startswith("##") else item for item in shown)
                yield DocExample(dedent(code).strip("\n") + "\n", path, first_line + start, first_line + number - 1, "")
            start = 0


def _find_script_examples(path: str, text: str) -> Iterator[DocExample]:
    for block in _SCRIPT_BLOCK_PATTERN.finditer(text):
        first_line = text.count("\n", 0, block.start()) + 1
        inner = "\n".join(re.sub(r"^\s*\*(?: |$)", "", line) for line in block[0][3:-2].split("\n"))
        for match in _SCRIPT_EXAMPLE_PATTERN.finditer(inner):
            fenced = _SCRIPT_CODE_PATTERN.search(match["body"])
            code = dedent(fenced["body"] if fenced else match["body"]).strip("\n")
            start = first_line + inner.count("\n", 0, match.start("body"))
            if "```" not in code:
                yield DocExample(f"{code}\n", path, start, start + match["body"].rstrip().count("\n"), "")


def _find_csharp_examples(path: str, text: str) -> Iterator[DocExample]:
    for block in _CSHARP_BLOCK_PATTERN.finditer(text):
        inner = "\n".join(re.sub(r"^[ \t]*/// ?", "", line) for line in block[0].split("\n"))
        first_line = text.count("\n", 0, block.start()) + 1
        for match in _CSHARP_CODE_PATTERN.finditer(inner):
            code = dedent(match["body"].strip("\n")).strip("\n")
            code = code.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
            start = first_line + inner.count("\n", 0, match.start("body"))
            yield DocExample(f"{code}\n", path, start, start + match["body"].count("\n"), "")


def _find_java_examples(path: str, text: str) -> Iterator[DocExample]:
    for block in _SCRIPT_BLOCK_PATTERN.finditer(text):
        first_line = text.count("\n", 0, block.start()) + 1
        inner = "\n".join(re.sub(r"^\s*\* ?", "", line) for line in block[0][3:-2].split("\n"))
        for match in _JAVA_CODE_PATTERN.finditer(inner):
            code = match["code"] or match["plain"] or ""
            if match["plain"] is not None:
                code = re.sub(r"</?[a-z]+>|\{@\w+ ([^{}]*)\}", r"\1", code)
                code = code.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace("&quot;", '"')
            start = first_line + inner.count("\n", 0, match.start())
            end = first_line + inner.count("\n", 0, match.end())
            yield DocExample(f"{dedent(code.strip(chr(10)))}\n", path, start, end, "")


def _locate(path: str, text: str, match: re.Match[str], code: str, title: str) -> DocExample:
    start = text.count("\n", 0, match.start("body")) + 1
    return DocExample(code, path, start, start + max(0, match["body"].rstrip("\n").count("\n")), title)


_FINDERS: Final[dict[str, Callable[[str, str], Iterator[DocExample]]]] = {
    "go": _find_go_examples,
    "java": _find_java_examples,
    "rust": _find_rust_examples,
    "csharp": _find_csharp_examples,
    **dict.fromkeys(("javascript", "typescript"), _find_script_examples),
}
