"""Tests against real servers, installed and run by `make engines`."""
