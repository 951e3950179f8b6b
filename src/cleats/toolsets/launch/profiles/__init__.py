"""Descriptions of one team's sites as data: hosts, products, pages and gates."""
