"""`cleats serve skills` on a disk that is slow whenever a test wants it to be.

While there is a file `hold` in the home folder, a look at a folder of skills does not end; it
leaves a file `looking` there. Whoever writes a file may take a minute for it: the machine of a test
may stop between the two halves.
"""

import time
from pathlib import Path

from cleats.cli.main import main
from cleats.toolsets.skills import library, reading, scan


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
    reading.WRITING = 60.0
    main()
