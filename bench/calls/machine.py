"""How much of the machine was ours while we measured; the rest is noise in the figures."""

import os
from dataclasses import dataclass
from pathlib import Path

QUIET = 0.1
"""The share of the CPUs that others may take before the figures are called rough."""


@dataclass(frozen=True, slots=True)
class Reading:
    """CPU seconds since boot: of everyone, of this process with its ended children, and idle."""

    busy: float
    own: float
    idle: float

    def others_since(self, earlier: "Reading") -> float:
        """The share of all CPU time since then that other processes took, from 0 to 1."""
        busy = self.busy - earlier.busy
        total = busy + self.idle - earlier.idle
        others = busy - (self.own - earlier.own)
        return max(0.0, others / total) if total else 0.0


def read() -> Reading:
    ticks = os.sysconf("SC_CLK_TCK")
    line = Path("/proc/stat").read_text().partition("\n")[0]
    # The two fields after these eight repeat guests' time, which `user` and `nice` hold already.
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, line.split()[1:9])
    own = os.times()
    return Reading(
        busy=(user + nice + system + irq + softirq + steal) / ticks,
        own=own.user + own.system + own.children_user + own.children_system,
        idle=(idle + iowait) / ticks,
    )
