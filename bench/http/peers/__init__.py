"""The servers that are measured, and the loop without one."""
