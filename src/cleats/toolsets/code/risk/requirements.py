"""Whether the arguments of a call are such that a sink is one: `shell=True`, text that is SQL."""

import re
from collections.abc import Mapping, Sequence

from cleats.toolsets.code.facts import Argument
from cleats.toolsets.code.risk.book import Test


def holds(test: Test, arguments: Sequence[Argument], texts: Mapping[str, str]) -> bool:
    """Ask for one condition. `texts` is what variables were given as literal text."""
    condition = test.condition
    meant = [
        argument
        for position, argument in enumerate(arguments)
        if (condition.position is None and not condition.keyword)
        or (condition.keyword and argument.keyword == condition.keyword)
        or (condition.position == position and not argument.keyword)
    ]
    if not condition.text and not condition.names:
        return bool(meant) != condition.absent
    return any(_fits(test, argument, texts) for argument in meant) != condition.absent


def _fits(test: Test, argument: Argument, texts: Mapping[str, str]) -> bool:
    if any(test.names(name) for name in argument.names):
        return True
    if not test.words:
        return False
    said = (argument.text, *(texts[name] for name in argument.names if name in texts))
    return any(text and re.search(test.words, text, re.IGNORECASE) for text in said)
