"""The book: README and docs as a site, and the proof that what they show is so.

Run `python -m book`. It builds the site, follows every internal link, and runs every code block:
commands in a home of their own, their output compared with the one shown; data is parsed, Python is
run. A block that cannot be run says why in a comment above it:

    <!-- not run: the reason -->

Two more comments help the blocks that are: `<!-- file: PATH -->` writes the block to a file that
later blocks use, and `<!-- exit: 1 -->` says how the last command of a block ends that is meant to
fail.
"""
