"""Small agents on Python libraries. Each runs in an environment of its own, as `python FILE`."""
