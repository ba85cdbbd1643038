#!/usr/bin/env bash
# Looks for common misspellings in the sources and the documentation with codespell.
#
#   scripts/check_spelling.sh
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

if ! command -v codespell >/dev/null; then
  echo "spelling: codespell is missing; install it with: apt-get install codespell" >&2
  exit 2
fi

# Words of ours that it takes for misspellings, and those that tests misspell on purpose.
ours=statics,eror
find . \( -path ./build -o -path './build-*' -o -path ./.deps -o -path ./.git -o -path ./runs -o -path ./LICENSE \) \
  -prune -o -type f -print0 | xargs -0 codespell --ignore-words-list="$ours"
