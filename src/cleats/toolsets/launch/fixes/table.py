"""Every rule there is, by the error code it repairs."""

from collections.abc import Mapping

from cleats.toolsets.launch.fixes import agreement, code, contents, front, links, lint, marks, truth
from cleats.toolsets.launch.fixes.model import Rule
from cleats.toolsets.launch.fixes.restore import CODE as MANUAL_EDIT

RULES: Mapping[str, Rule] = {
    **agreement.RULES,
    **code.RULES,
    **contents.RULES,
    **front.RULES,
    **lint.RULES,
    **links.RULES,
    **marks.RULES,
    **truth.RULES,
}

CODES = frozenset(RULES) | {MANUAL_EDIT}
"""What can be repaired."""
