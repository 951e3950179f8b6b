"""The explanation of a rule in Markdown: one text for `cleats contract explain` and for its page."""

import json
from typing import Final

from cleats.contract.compat.rules import BumpLevel, ContractRule

INPUT_PREFIXES: Final = ("INPUT_",)
OUTPUT_PREFIXES: Final = ("OUTPUT_", "ENVELOPE_", "ERROR_", "TOOL_ERROR_")

SECURITY_REASON: Final = (
    "Models act on the texts of a server, so new words can change what an agent does although no schema changes."
)
UNPROVEN_REASON: Final = "A change that cannot be proved safe might break a client, so it counts as breaking."
BREAKING_REASONS: Final = {
    INPUT_PREFIXES: "A call that worked before can fail, or do something else, with the new version.",
    OUTPUT_PREFIXES: "A client that was written for the old answers can fail on the new ones.",
}
REASONS: Final = {
    BumpLevel.MAJOR: "A client that relies on the old version can fail with the new one, or ask its user again.",
    BumpLevel.MINOR: "Everything that worked before still works; the new version tells clients that there is more.",
    BumpLevel.PATCH: "No call changes; the new version tells readers that the text changed.",
    BumpLevel.NONE: "Nothing changes for clients.",
}


def explain_rule(rule: ContractRule) -> str:
    """Describe a rule: what changed, why it matters, an example, and what to do."""
    parts = [
        f"# {rule.id}",
        rule.purpose,
        f"Why it matters: {_describe_reason(rule)}",
        _describe_bump(rule),
        f"Before:\n\n```json\n{_format_example(rule.before)}\n```",
        f"After:\n\n```json\n{_format_example(rule.after)}\n```",
        f"How to fix: {rule.fix}",
    ]
    return "\n\n".join(parts)


def _describe_reason(rule: ContractRule) -> str:
    if rule.security:
        return SECURITY_REASON
    if rule.id == "CANNOT_PROVE_SAFE":
        return UNPROVEN_REASON
    if rule.level is BumpLevel.MAJOR:
        for prefixes, reason in BREAKING_REASONS.items():
            if rule.id.startswith(prefixes):
                return reason
    return REASONS[rule.level]


def _describe_bump(rule: ContractRule) -> str:
    bump = "needs no bump" if rule.level is BumpLevel.NONE else f"needs a {rule.level} bump"
    sentences = [
        f"The contract's version {bump}{', because the change is breaking' if rule.level is BumpLevel.MAJOR else ''}."
    ]
    if rule.integer:
        sentences.append("The `schemaVersion` of each affected tool has to rise as well.")
    if rule.security:
        sentences.append("It belongs to the security class: `--security` decides whether it fails a check.")
    return " ".join(sentences)


def _format_example(text: str) -> str:
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
