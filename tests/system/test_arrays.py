import subprocess
import sys
from pathlib import Path

import cleats

PROGRAM = """
import sys
from cleats.system.arrays import NDArray, np

assert "numpy._typing" not in sys.modules
assert np.linalg.norm(np.asarray([3.0, 4.0])) == 5.0
assert NDArray[np.int8]
import numpy.typing

assert str(numpy.typing.NDArray[np.int8]).startswith("numpy.ndarray[")
"""


def test_numpy_is_loaded_without_its_types_which_can_be_imported_later() -> None:
    """A process that needs arrays starts sooner, and a plugin can still use the types."""
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


def test_every_module_loads_numpy_in_this_way() -> None:
    """One import of numpy itself would load the types again."""
    package = Path(cleats.__file__).parent
    texts = {path: path.read_text("utf-8") for path in package.rglob("*.py") if path.name != "arrays.py"}

    importing = [path for path, text in texts.items() if "import numpy" in text or "from numpy" in text]

    assert importing == []
