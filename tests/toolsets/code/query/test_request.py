"""Values of filters that have to be known names."""

import pytest

from cleats.contract.errors import ToolError
from cleats.toolsets.code.query.request import parse_request


@pytest.mark.parametrize(
    ("argument", "value", "hint"),
    [
        ("type", "funktion", "Did you mean function"),
        ("type", "xyzzy", "Use one of arrowfunction, "),
        ("lang", "pyhton", "Did you mean python"),
        ("lang", "zzzzzz", "Use one of "),
    ],
)
def test_an_unknown_name_gets_similar_names_or_a_list(argument: str, value: str, hint: str) -> None:
    with pytest.raises(ToolError) as caught:
        parse_request({"query": "*", argument: value})

    assert caught.value.message.startswith(f"{argument}: {value!r} is not a known ")
    assert caught.value.hint.startswith(hint)
