"""Repositories of a few files, read by the real parsers, for tests of risk."""

from collections.abc import Mapping

from cleats.toolsets.code.languages.engine import declarations
from cleats.toolsets.code.risk.linking import Linkable, link
from cleats.toolsets.code.risk.local import assess
from cleats.toolsets.code.risk.rules import load
from cleats.toolsets.code.risk.summary import Risk

RULES = load()


def functions(files: Mapping[str, str], lang: str) -> list[Linkable]:
    """Every chunk of every file, as a build would hand it to linking."""
    found: list[Linkable] = []
    for path, text in files.items():
        parsed = declarations(lang, path, text.encode())
        assert not parsed.problem, parsed.problem
        for chunk in parsed.chunks:
            summary = assess(chunk, lang, RULES, parsed.imports)
            own = (len(found), path, chunk.name, lang, parsed.imports, chunk.params, summary)
            found.append(Linkable(*own))
    return found


def risks(files: Mapping[str, str], lang: str) -> dict[str, Risk]:
    """What is concluded, by `path:name`."""
    known = functions(files, lang)
    return {f"{known[key].path}:{known[key].name}": risk for key, risk in link(known).items()}


def flows(files: Mapping[str, str], lang: str) -> set[str]:
    return {str(flow) for risk in risks(files, lang).values() for flow in risk.flows}
