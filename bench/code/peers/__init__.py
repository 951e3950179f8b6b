"""The programs that Cleats is compared with, and the bare limits."""
