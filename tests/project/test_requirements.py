"""Tests that every requirement has a test, and every test names a known requirement."""

from importlib import import_module

from tests.support.paths import REPOSITORY_ROOT, TESTS_FOLDER
from tests.support.requirements import DIVERGENCES, TESTS_BY_REQUIREMENT, requirement


def import_all_tests() -> None:
    for path in TESTS_FOLDER.rglob("test_*.py"):
        module = path.relative_to(REPOSITORY_ROOT).with_suffix("")
        import_module(".".join(module.parts))


def test_every_requirement_is_proven_by_some_test() -> None:
    import_all_tests()

    assert [key for key, tests in TESTS_BY_REQUIREMENT.items() if not tests] == []


@requirement("b:artifacts:conformance-tests")
def test_the_sentences_about_mcp_and_http_are_proven_on_these_surfaces() -> None:
    import_all_tests()

    for prefix, package in (("b:mcp:", "tests.transports.mcp."), ("b:http:", "tests.transports.http.")):
        proofs = [test for key, tests in TESTS_BY_REQUIREMENT.items() if key.startswith(prefix) for test in tests]
        assert len([test for test in proofs if test.startswith(package)]) >= 10, prefix


def test_a_divergence_belongs_to_a_requirement_and_says_where_it_is_explained() -> None:
    for key, reason in DIVERGENCES.items():
        page, heading = reason.removesuffix(".").rsplit(". ", 1)[1].split(", ", 1)
        assert key in TESTS_BY_REQUIREMENT
        assert f"## {heading}" in (REPOSITORY_ROOT / page).read_text()
