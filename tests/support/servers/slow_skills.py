"""`cleats serve skills` on a disk that is slow whenever a test wants it to be.

While there is a file `hold` in the home folder, a scan of a folder of skills does not end; it
writes a file `looking` there. The write grace period is a minute, because the machine of a test may
stop between the two halves of a write.
"""

import time
from pathlib import Path

from cleats.cli.main import main
from cleats.toolsets.skills import library, scan, skill


class SlowSkillTree(scan.SkillTree):
    """A tree whose scans wait until the test releases them."""

    def scan(self) -> bool:
        home = Path.home()
        while (home / "hold").exists():
            (home / "looking").touch()
            time.sleep(0.005)
        return super().scan()


if __name__ == "__main__":
    vars(library)["SkillTree"] = SlowSkillTree
    skill.WRITE_GRACE_SECONDS = 60.0
    main()
