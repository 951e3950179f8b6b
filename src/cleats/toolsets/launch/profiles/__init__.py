"""What one team's sites are like, as data: their hosts, products, pages and gates."""
