"""How much the path of a file says about it: code itself, tests, documents, or code beside the product."""

import re
from typing import Final

from cleats.toolsets.code.search.fusion import TEST_PATH_PATTERN, is_duplicate_path

TEST_WEIGHT, NON_CODE_WEIGHT, SIDE_WEIGHT, DUPLICATE_WEIGHT = 0.4, 0.35, 0.5, 0.2
"""Factors for tests, unless the question is about them; for documents and data; for code beside the product,
such as examples, generated code and migrations; and for build output and vendored code."""

TEST_STEMS: Final = frozenset({"test", "fixtur", "mock", "spec"})
"""Stems of questions that are about tests."""

_NON_CODE_PATTERN: Final = re.compile(
    r"(?i)\.(?:mdx?|rst|txt|adoc|json|ya?ml|toml|pot|css|scss|less|html?|xml|properties|ini|cfg|sql|arb|strings|resx"
    r"|sh|cmake|gradle|in|patch|diff|[1-9])$|(?:^|/)[^/.]*$"
)
_SIDE_PATTERN: Final = re.compile(
    r"(?i)(?:^|/)(?:docs?|examples?|samples?|bench(?:marks?|es)?|locales?|lang|i18n|phrases|translations?|migrations?"
    r"|alterations|scripts?|generated|storybook|\.github|\.yarn|playgrounds?|demos?|sandbox|dummy|myapp|fuzz"
    r"|data_update_scripts)/|_pb2?\.|\.pb\.|[._](?:stories|mock)s?\.|CHANGELOG|\.(?:erb|haml|slim|twig)$"
)
_TEST_FOLDER_PATTERN: Final = re.compile(
    r"(?i)(?:^|/)(?:[^/]*[-_.])?(?:tests?|specs?|e2e|fixtures?|mocks?|__mocks__)(?:[-_.][^/]*)?/"
    r"|(?:^|/)(?-i:[^/]*Tests?/|mock_|Mock)|tests?$"
)


def weigh_path(path: str, *, is_about_tests: bool) -> float:
    """Return the factor for the score of a file."""
    is_test = TEST_PATH_PATTERN.search(path) or _TEST_FOLDER_PATTERN.search(path)
    weight = TEST_WEIGHT if is_test and not is_about_tests else 1.0
    if _NON_CODE_PATTERN.search(path):
        return weight * NON_CODE_WEIGHT
    if is_duplicate_path(path):
        return weight * DUPLICATE_WEIGHT
    return weight * SIDE_WEIGHT if _SIDE_PATTERN.search(path) else weight
