"""The book: README and docs as a site, and the check that their code blocks work.

Run `python -m book`. It builds the site, follows every internal link, and runs every code block:
commands run in a home of their own and their output is compared with the text shown; data is
parsed, Python is run. A block that cannot be run says why in a comment above it:

    <!-- not run: the reason -->

Two more comments help the blocks that are run: `<!-- file: PATH -->` writes the block to a file
that later blocks use, and `<!-- exit: 1 -->` gives the exit code of the last command of a block
that is meant to fail.
"""
