"""Records of findings and decisions: their structure, their stores, and their pages in the index."""
