"""Journeys in a real browser. `make browser` runs them; the files are not named like tests, so `make test` does not."""
