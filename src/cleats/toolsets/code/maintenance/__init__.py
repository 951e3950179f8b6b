"""Maintenance of indexes: inventory, costs, compaction and removal."""
