"""`cleats serve skills` on a disk that is slow whenever a test wants it to be.

While there is a file `hold` in the home folder, a look at a folder of skills does not end; it
leaves a file `looking` there.
"""

import time
from pathlib import Path

from cleats.cli.main import main
from cleats.toolsets.skills import library, scan


class SlowTree(scan.Tree):
    """A tree that looks as slowly as it is told to."""

    def look(self, *, thorough: bool = False) -> bool:
        home = Path.home()
        while (home / "hold").exists():
            (home / "looking").touch()
            time.sleep(0.005)
        return super().look(thorough=thorough)


if __name__ == "__main__":
    vars(library)["Tree"] = SlowTree
    main()
