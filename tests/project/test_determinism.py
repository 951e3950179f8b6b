"""The examples of a law are the same in every run, whatever ran before it."""

import sys
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def draw_examples() -> list[int | str]:
    """Return the examples that a law is tried with."""
    drawn: list[int | str] = []

    @settings(derandomize=True, max_examples=100)
    @given(st.integers() | st.text())
    def law(value: int | str) -> None:
        drawn.append(value)

    law()
    return drawn


def test_examples_do_not_depend_on_the_modules_that_happen_to_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = ", ".join(str(7_000_000_003 + number) for number in range(200))
    (tmp_path / "just_loaded.py").write_text(f"NUMBERS = [{numbers}]\nTEXT = 'an unheard word'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = draw_examples()

    import_module("just_loaded")
    after = draw_examples()
    del sys.modules["just_loaded"]

    assert len(before) == 100
    assert after == before
