"""The programs that ours is compared with, and the bare limits."""
