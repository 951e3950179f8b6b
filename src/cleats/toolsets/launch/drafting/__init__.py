"""Pages written from facts: templates, the text that fills them, and front matter that fits."""
