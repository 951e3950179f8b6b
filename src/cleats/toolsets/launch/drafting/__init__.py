"""Pages written from facts: templates, the text that fills them, and matching front matter."""
