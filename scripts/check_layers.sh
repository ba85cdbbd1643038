#!/usr/bin/env bash
# Checks that the sources keep to the layers: base <- plan <- core <- models, app; data on base.
#
#   scripts/check_layers.sh
#
# Reads the #include lines. Prints every line that goes the wrong way, and fails if there is one.
set -euo pipefail
shopt -s lastpipe # report() counts in this shell, at the end of its pipe
cd "$(dirname "$(readlink -f "$0")")/.."

failures=0

# report MESSAGE: prints the lines on stdin, if any, and counts a failure.
report() {
  local lines
  lines=$(cat)
  if [[ -n $lines ]]; then
    printf '%s:\n%s\n' "$1" "$lines" >&2
    failures=$((failures + 1))
  fi
}

# includes FILE...: "file:line:#include ..." for each include.
includes() {
  [[ $# -gt 0 ]] || return 0
  grep -nHE '^[[:space:]]*#[[:space:]]*include' "$@" || true
}

# grep that does not fail for want of a match.
matching() {
  grep -E "$1" || true
}
other_than() {
  grep -vE "$1" || true
}

sources_of() {
  find "$1" -name '*.h' -o -name '*.cpp'
}

# check_layer FOLDER ALLOWED: sources of gpipe/FOLDER include only those folders of gpipe, a pattern.
check_layer() {
  local files
  mapfile -t files < <(sources_of "gpipe/$1")
  includes "${files[@]}" | matching '[<"](gpipe|app|tests)/' | other_than "[<\"]gpipe/($2)/" |
    report "gpipe/$1 may include only gpipe/($2)"
}

check_layer base 'base'
check_layer plan 'base|plan'
check_layer core 'base|plan|core'
check_layer models 'base|plan|core|models'
check_layer data 'base|data'

# LibTorch above base, plan and the executor only.
torch='[<"](torch|ATen|c10|caffe2)/'
torch_free=(gpipe/core/{executor,worker_threads,transport,local_transport}.h)
mapfile -t low < <(sources_of gpipe/base; sources_of gpipe/plan)
includes "${low[@]}" "${torch_free[@]}" | matching "$torch" |
  report "LibTorch is not for base, plan and the executor's headers"
includes "${torch_free[@]}" | matching '[<"]gpipe/core/' |
  other_than '/(executor|worker_threads|transport|local_transport)\.h"' |
  report "the executor's headers may include of gpipe/core only each other"

# Headers are installed, and read by everyone: no third-party library in them, and narrow ones of LibTorch.
mapfile -t headers < <(find gpipe -name '*.h')
includes "${headers[@]}" | matching '[<"](nlohmann/|CLI/|toml|xxhash|zlib|gtest|benchmark)' |
  report "headers of gpipe may not include third-party libraries other than LibTorch"
includes "${headers[@]}" | matching '[<"]torch/(torch|all)\.h' |
  report "headers include narrow headers of LibTorch, not torch/torch.h"

# is_listed FILE: whether the CMakeLists.txt of its folder, or of one above it, names it.
is_listed() {
  local folder=${1%/*} name=${1##*/}
  # gpipe_add_example() takes the name without its ending.
  [[ $folder != examples ]] || name=${name%.cpp}
  while :; do
    if [[ -f $folder/CMakeLists.txt ]] && grep -qE "(^|[ (])${name//./\\.}([ )]|\$)" "$folder/CMakeLists.txt"; then
      return 0
    fi
    [[ $folder == */* ]] || return 1
    name=${folder##*/}/$name
    folder=${folder%/*}
  done
}

# A source that is not listed is not built, and a header that is not listed is not installed.
find gpipe app benchmarks tests examples -name '*.cpp' | sort | while IFS= read -r file; do
  is_listed "$file" || echo "$file"
done | report "not listed in a CMakeLists.txt"

includes "${headers[@]}" | sed -nE 's|^([^:]*):.*"(gpipe/[^"]*)".*|\1 \2|p' | while read -r header included; do
  if is_listed "$header" && ! is_listed "$included"; then
    echo "$header: $included"
  fi
done | report "an installed header includes one that is not listed for installation"

if ((failures > 0)); then
  exit 1
fi
echo "layers: $(find gpipe app -name '*.h' -o -name '*.cpp' | wc -l) sources keep to them"
