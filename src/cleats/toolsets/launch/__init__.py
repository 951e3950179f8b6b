"""The launch toolset: from a repository to the pages of its site, each claim with evidence."""
