"""What a fleet costs and where it ends: two workers measured, more of them worked out."""

QUICK = ("--runs", "1", "--records", "200")
