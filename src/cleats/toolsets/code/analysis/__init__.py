"""Facts about files: declarations, formats, history, lint findings, risks, word vectors."""
