"""The CPU share of this benchmark while it measured; the rest is noise in the figures."""

import os
from dataclasses import dataclass
from pathlib import Path

MAX_OTHERS_SHARE = 0.1
"""The share of the CPUs that other processes may take before the figures are called rough."""


@dataclass(frozen=True, slots=True)
class CpuReading:
    """CPU seconds since boot: of all processes, of this one with its ended children, and idle."""

    busy_seconds: float
    own_seconds: float
    idle_seconds: float

    def compute_others_share(self, earlier: "CpuReading") -> float:
        """Return the share of all CPU time since then that other processes took, from 0 to 1."""
        busy = self.busy_seconds - earlier.busy_seconds
        total = busy + self.idle_seconds - earlier.idle_seconds
        others_seconds = busy - (self.own_seconds - earlier.own_seconds)
        return max(0.0, others_seconds / total) if total else 0.0


def read_cpu_times() -> CpuReading:
    ticks = os.sysconf("SC_CLK_TCK")
    line = Path("/proc/stat").read_text().partition("\n")[0]
    # The two fields after these eight repeat guests' time, which `user` and `nice` hold already.
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, line.split()[1:9])
    process_times = os.times()
    return CpuReading(
        busy_seconds=(user + nice + system + irq + softirq + steal) / ticks,
        own_seconds=process_times.user
        + process_times.system
        + process_times.children_user
        + process_times.children_system,
        idle_seconds=(idle + iowait) / ticks,
    )
