"""All code on a page must come from the snippet catalogue, and parse."""

from collections.abc import Iterator, Mapping
from typing import Any

from cleats.toolsets.launch.gates.consistency import SHELL_LANGUAGES, is_install_block
from cleats.toolsets.launch.gates.model import Gate, GateMessage, IssueDraft, LaunchSite, PageFile, make_error
from cleats.toolsets.launch.gates.page_text import index_snippets, normalise_code, normalise_language
from cleats.toolsets.launch.site.pages import CodeBlock
from cleats.toolsets.launch.snippets.syntax import find_faults

NON_CODE_LANGUAGES = frozenset({"text", "txt", "plain", "plaintext", "output", "diff", "mermaid"})
"""Languages of fenced blocks that are not code."""


def check_snippets(site: LaunchSite) -> Iterator[GateMessage]:
    catalogue = index_snippets(site)
    yield f"the catalogue holds {len(catalogue)} snippets"
    code_blocks = [
        (file, fence) for file in site.files for fence in file.fences if fence.language not in NON_CODE_LANGUAGES
    ]
    faults = find_faults((fence.code, normalise_language(fence)) for _, fence in code_blocks)
    for (file, fence), fault in zip(code_blocks, faults, strict=True):
        yield from _check_code_block(file, fence, fault, catalogue)


def _check_code_block(
    file: PageFile, fence: CodeBlock, fault: str, catalogue: Mapping[str, Mapping[str, Any]]
) -> Iterator[IssueDraft]:
    if fault:
        message = f"the code does not parse: {fault}"
        yield make_error("GATE_SNIPPET_SYNTAX", message, file.path, fence.line)
    code = normalise_code(fence.code)
    if fence.language in SHELL_LANGUAGES and (fence.language or is_install_block(fence)):
        return  # commands are not snippets; the consistency gate checks those that install
    if code and code not in catalogue:
        message = "the code is not in the catalogue of snippets"
        yield make_error("GATE_SNIPPET_UNKNOWN", message, file.path, fence.line)


GATE = Gate(
    name="snippet_syntax",
    purpose=__doc__,
    check=check_snippets,
    reads_pages=True,
    local_seconds=60.0,
    strict_seconds=120.0,
)
