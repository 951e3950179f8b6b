"""The files of a checkout: listed once, parsed safely, sorted by purpose."""
