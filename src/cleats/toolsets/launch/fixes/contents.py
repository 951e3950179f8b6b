"""Fixes of a table of contents: the pages it forgot are added to its list."""

from cleats.toolsets.launch.fixes.model import Answer, Case, ended
from cleats.toolsets.launch.gates.content_distribution import children, links_to


def children_listed(case: Case) -> Answer:
    file = case.file
    items = [
        f"- [{child['title']}]({child['url_path']})"
        for child in children(case.site, file)
        if not links_to(file, child["url_path"])
    ]
    if not items or case.text is None:
        return None
    lines = ended(case.text).rstrip("\n").split("\n")
    listed = [
        number
        for number, line in file.prose
        if line.lstrip().startswith(("- [", "* [")) and number <= len(lines)
    ]
    if listed:
        return "\n".join([*lines[: listed[-1]], *items, *lines[listed[-1] :]]) + "\n"
    return "\n".join([*lines, "", "## Contents", "", *items]) + "\n"


RULES = {"GATE_CONTENT_TOC_CHILD": children_listed}
