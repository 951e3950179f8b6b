"""The console: web pages for people, made from the answers of the tools that their token may call."""
