"""Code that can be shown: found, cleaned, checked and tagged."""
