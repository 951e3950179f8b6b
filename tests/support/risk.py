"""Repositories of a few files, parsed by the real parsers, for tests of risk."""

from collections.abc import Mapping

from cleats.toolsets.code.analysis.languages.engine import parse_declarations
from cleats.toolsets.code.analysis.risk.function_flows import summarize_chunk
from cleats.toolsets.code.analysis.risk.linking import LinkableFunction, link_functions
from cleats.toolsets.code.analysis.risk.rules import load_rules
from cleats.toolsets.code.analysis.risk.summary import Risk

RISK_RULES = load_rules()


def extract_functions(files: Mapping[str, str], lang: str) -> list[LinkableFunction]:
    """Return every chunk of every file in the form that a build passes to linking."""
    linkables: list[LinkableFunction] = []
    for path, text in files.items():
        parsed = parse_declarations(lang, path, text.encode())
        assert not parsed.problem, parsed.problem
        for chunk in parsed.chunks:
            summary = summarize_chunk(chunk, lang, RISK_RULES, parsed.imports)
            linkable_fields = (len(linkables), path, chunk.name, lang, parsed.imports, chunk.params, summary)
            linkables.append(LinkableFunction(*linkable_fields))
    return linkables


def link_risks(files: Mapping[str, str], lang: str) -> dict[str, Risk]:
    """Return the concluded risks by `path:name`."""
    linkables = extract_functions(files, lang)
    return {f"{linkables[key].path}:{linkables[key].name}": risk for key, risk in link_functions(linkables).items()}


def list_flows(files: Mapping[str, str], lang: str) -> set[str]:
    return {str(flow) for risk in link_risks(files, lang).values() for flow in risk.flows}
