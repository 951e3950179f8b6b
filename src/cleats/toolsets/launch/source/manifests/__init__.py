"""Readers of package manifests, one module per ecosystem."""
