#!/bin/sh
# Install the Chromium of Debian for the browser tests, or say what is missing.
set -eu
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null
else
    echo "make browser needs Chromium: install it (Debian: apt-get install chromium), or set CHROMIUM to its path." >&2
    exit 1
fi
