"""Triage: findings of scanners, decisions about them, and the evidence in the code."""
