"""The cost and the limits of a fleet: two workers measured, larger fleets calculated."""

QUICK_ARGUMENTS = ("--runs", "1", "--records", "200")
