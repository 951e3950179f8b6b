"""Every demand has a proof, and every proof a demand."""

from importlib import import_module
from pathlib import Path

from tests.requirements import PROVEN


def test_every_requirement_is_proven_by_some_test() -> None:
    for path in Path(__file__).parent.glob("test_*.py"):
        import_module(f"tests.{path.stem}")

    assert [key for key, tests in PROVEN.items() if not tests] == []
