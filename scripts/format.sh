#!/usr/bin/env bash
# Formats the C++ sources with clang-format 19.
#
#   scripts/format.sh            rewrites what differs
#   scripts/format.sh --check    changes nothing, fails if something differs
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

# Versions format differently, so it has to be this one.
formatter=clang-format-19
if ! command -v "$formatter" >/dev/null; then
  echo "format: $formatter is missing; install it with: apt-get install clang-format-19" >&2
  exit 2
fi

mode=(-i)
case "${1:-}" in
  --check) mode=(--dry-run --Werror) ;;
  "") ;;
  *)
    echo "usage: scripts/format.sh [--check]" >&2
    exit 2
    ;;
esac

find gpipe app tests benchmarks examples \( -name '*.h' -o -name '*.cpp' \) -print0 |
  xargs -0 -r "$formatter" --style=file "${mode[@]}" || {
  echo "format: run scripts/format.sh and look at the difference" >&2
  exit 1
}
