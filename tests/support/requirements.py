"""The sentences of the specs, and the tests that prove them.

Every binding sentence has an id in `tests/specs`; `@requirement(id)` ties a test to it.
`test_requirements.py` fails for a sentence without a test, and a test that names an unknown
sentence fails at import.
"""

from collections.abc import Callable
from typing import TypeVar

from tests.specs import a, b, c, d, e

TestT = TypeVar("TestT", bound=Callable[..., object])

SPEC_REQUIREMENTS = {**a.SENTENCES, **b.SENTENCES, **c.SENTENCES, **d.SENTENCES, **e.SENTENCES}

DIVERGENCES = dict(b.DIVERGENCES)
"""Requirements that are met in another way than their sentence says, with the reason."""

TESTS_BY_REQUIREMENT: dict[str, list[str]] = {key: [] for key in SPEC_REQUIREMENTS}


def requirement(*keys: str) -> Callable[[TestT], TestT]:
    """Tie a test to the sentences it proves; an unknown id fails at import."""

    def register_test(test: TestT) -> TestT:
        for key in keys:
            TESTS_BY_REQUIREMENT[key].append(f"{test.__module__}.{test.__qualname__}")
        return test

    return register_test
