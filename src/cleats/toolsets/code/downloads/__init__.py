"""Downloads: sources, archives, and the tools that store the downloaded files."""
