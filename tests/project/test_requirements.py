"""Tests that every requirement has a test, and every test names a known requirement."""

from importlib import import_module

from tests.support.paths import REPOSITORY_ROOT, TESTS_FOLDER
from tests.support.requirements import TESTS_BY_REQUIREMENT


def test_every_requirement_is_proven_by_some_test() -> None:
    for path in TESTS_FOLDER.rglob("test_*.py"):
        module = path.relative_to(REPOSITORY_ROOT).with_suffix("")
        import_module(".".join(module.parts))

    assert [key for key, tests in TESTS_BY_REQUIREMENT.items() if not tests] == []
