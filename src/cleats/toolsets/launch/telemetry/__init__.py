"""Telemetry about runs, for monitoring: records, their API and their delivery."""
