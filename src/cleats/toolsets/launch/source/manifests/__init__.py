"""What a package says about itself, read from the manifest of its ecosystem."""
