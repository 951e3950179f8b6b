"""The command line of a product: each command with what it does, its subcommands, arguments and options."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleats.toolsets.launch.drafting import document_text
from cleats.toolsets.launch.drafting.material import LaunchMaterial
from cleats.toolsets.launch.drafting.page_context import PageContext
from cleats.toolsets.launch.site.claim_markers import render_claim_marker

Command = Mapping[str, Any]


def render_commands(context: PageContext) -> str:
    """Render the commands that the installation provides, with the help that their source declares."""
    material = context.material
    sections = document_text.list_sections(material, "command_line")
    texts = [document_text.render_section(material, section) for section in sections]
    texts += [_render_command(material, command) for command in list_commands(material)]
    return "\n\n".join(filter(None, texts))


def list_commands(material: LaunchMaterial) -> Sequence[Command]:
    """Return the commands of the product, as the facts have them."""
    commands: Sequence[Command] = material.facts.get("commands", ())
    return commands


def _render_command(material: LaunchMaterial, command: Command) -> str:
    lead = material.state_claim(command["claim_id"]) if command["claim_id"] in material.claims else ""
    rows = [
        f"| `{_escape_cell(row['name'])}` | {_escape_cell(row['help'])} {render_claim_marker([row['claim_id']])} |"
        for row in command["arguments"]
        if row["claim_id"] in material.claims
    ]
    table = "\n".join(["| Argument | Meaning |", "| --- | --- |", *rows]) if rows else ""
    return "\n\n".join(filter(None, [lead, table]))


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|")
