"""Folders of the checkout that tests read."""

from pathlib import Path

TESTS_FOLDER = Path(__file__).parents[1]
REPOSITORY_ROOT = TESTS_FOLDER.parent
