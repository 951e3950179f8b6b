"""Snippets that pages can show: found, cleaned, checked and tagged."""
