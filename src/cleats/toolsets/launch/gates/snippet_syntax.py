"""Every piece of code on a page comes from the catalogue, and parses."""

from collections.abc import Iterator, Mapping
from typing import Any

from cleats.toolsets.launch.gates.catalogue import known, language, normal
from cleats.toolsets.launch.gates.consistency import SHELLS, only_installs
from cleats.toolsets.launch.gates.model import Finding, Gate, Said, error
from cleats.toolsets.launch.gates.site import PageFile, Site
from cleats.toolsets.launch.pages import Fence
from cleats.toolsets.launch.snippets.syntax import checks

PROSE = frozenset({"text", "txt", "plain", "plaintext", "output", "diff", "mermaid"})
"""What is shown in a block without being code."""


def check(site: Site) -> Iterator[Said]:
    catalogue = known(site)
    yield f"the catalogue holds {len(catalogue)} snippets"
    shown = [
        (file, fence) for file in site.files for fence in file.fences if fence.language not in PROSE
    ]
    faults = checks((fence.code, language(fence)) for _, fence in shown)
    for (file, fence), fault in zip(shown, faults, strict=True):
        yield from _fence(file, fence, fault, catalogue)


def _fence(
    file: PageFile, fence: Fence, fault: str, catalogue: Mapping[str, Mapping[str, Any]]
) -> Iterator[Finding]:
    if fault:
        message = f"the code does not parse: {fault}"
        yield error("GATE_SNIPPET_SYNTAX", message, file.path, fence.line)
    code = normal(fence.code)
    if fence.language in SHELLS and (fence.language or only_installs(fence)):
        return  # commands are no snippets; those that install are the consistency gate's
    if code and code not in catalogue:
        message = "the code is not in the catalogue of snippets"
        yield error("GATE_SNIPPET_UNKNOWN", message, file.path, fence.line)


GATE = Gate(
    name="snippet_syntax", purpose=__doc__, check=check, reads_pages=True, local=60.0, strict=120.0
)
