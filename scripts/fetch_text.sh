#!/usr/bin/env bash
# Fetches English text for the byte-level language model: the plain-text files of some of Debian's documentation
# packages, which are downloaded and unpacked, not installed. Works as root or not; changes nothing but FOLDER.
#
#   scripts/fetch_text.sh FOLDER
#
# Writes FOLDER/<package>_<file>.txt. Does nothing where FOLDER already holds what fetch_text.packages lists.
set -euo pipefail

list="$(dirname "$(readlink -f "$0")")/fetch_text.packages"

fail() {
  echo "fetch_text: $*" >&2
  exit 1
}

[[ $# -eq 1 && $1 != -* ]] || fail "usage: scripts/fetch_text.sh FOLDER"
folder=$1
for tool in apt-get dpkg-deb gzip sha256sum; do
  command -v "$tool" >/dev/null || fail "$tool is missing; run this on Debian, or put any *.txt files into $folder"
done
mkdir -p "$folder" || fail "$folder cannot be made; give a folder that can be written to"

# One line for what FOLDER holds; the last step of a complete fetch writes it.
stamp="$folder/.fetch_text"
wanted=$(sha256sum <"$list")
summary() {
  local files=("$folder"/*_*.txt)
  echo "$folder: ${#files[@]} files, $(cat "${files[@]}" | wc -c) bytes"
}
if [[ -f $stamp && $(<"$stamp") == "$wanted" ]] && compgen -G "$folder/*_*.txt" >/dev/null; then
  summary
  exit 0
fi

work=$(mktemp -d "$folder/.fetch_text.XXXXXX") || fail "$folder cannot be written to; give another folder"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{packages,lists/partial,cache/archives/partial,text}

run_apt() {
  (cd "$work/packages" && apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=1 -o Acquire::http::Timeout=20 \
    "$@") >>"$work/log" 2>&1
}

mapfile -t packages < <(awk '!/^#/ && NF {print $1}' "$list" | sort -u)

# First with the system's package lists; where they are absent or outdated, with fresh ones of our own.
private=(-o "Dir::State::Lists=$(readlink -f "$work/lists")" -o "Dir::Cache=$(readlink -f "$work/cache")")
if ! run_apt download "${packages[@]}"; then
  if ! { run_apt "${private[@]}" update && run_apt "${private[@]}" download "${packages[@]}"; }; then
    sed 's/^/  /' "$work/log" >&2
    fail "the packages cannot be downloaded (see above); check the network and apt's sources," \
      "or put any *.txt files into $folder"
  fi
fi

# extract PACKAGE PATTERN: the matching files as text, named so that folders cannot clash.
extract() {
  local root="$work/unpacked/$1" file name count=0
  if [[ ! -d $root ]]; then
    mkdir -p "$root"
    dpkg-deb -x "$work/packages/$1"_*.deb "$root"
  fi
  while IFS= read -r file; do
    name=${file#"$root"/usr/share/}
    name=${name#doc/}
    name=${name%.gz}
    gzip -cdf "$file" >"$work/text/$1_$(tr / - <<<"$name")"
    count=$((count + 1))
  done < <(find "$root" -type f -path "$2" | LC_ALL=C sort)
  ((count > 0)) || fail "$1 has no file $2; mend $list"
}

while read -r package pattern; do
  extract "$package" "$pattern"
done < <(awk '!/^#/ && NF' "$list")

mv "$work"/text/*.txt "$folder"/
echo "$wanted" >"$stamp"
summary
