"""Tests of the package as the command imports it, before anything can answer."""

import subprocess
import sys

import cleats
from cleats.contract.versions import TOOLING_VERSION

IMPORT_SCRIPT = "import sys; before = set(sys.modules); import cleats.__main__; "
PRINT_MODULES_SCRIPT = "print(*sorted(set(sys.modules) - before))"


def test_nothing_is_imported_before_ctrl_c_can_be_answered() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_SCRIPT + PRINT_MODULES_SCRIPT], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["cleats", "cleats.__main__"]


def test_the_package_knows_its_version_and_nothing_else() -> None:
    assert cleats.__version__ == TOOLING_VERSION
    assert not hasattr(cleats, "version")
