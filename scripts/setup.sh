# shellcheck shell=bash disable=SC2034,SC2154 # variables pass between this file and ./run
# Set-up and build, for ./run: sourced, not run. In: top, build, deps.
# Everything here is quick where nothing is to be done.

build_packages=(g++ cmake ninja-build python3 python3-venv ca-certificates ccache mold
  nlohmann-json3-dev libcli11-dev libtomlplusplus-dev libxxhash-dev zlib1g-dev)
data_packages=(dataset-fashion-mnist)
test_packages=(libgtest-dev libgmock-dev clang-format-19 codespell git)

torch_wheels=(torch==2.15.0 'nvidia-cuda-runtime==13.2.*' 'nvidia-cuda-cupti==13.2.*')

say() {
  echo "run: $*"
}

fail() {
  echo "run: $*" >&2
  exit 1
}

# Two set-ups at once would spoil each other.
lock_set_up() {
  mkdir -p "$deps" || fail "$top cannot be written to; clone the project into a folder of yours"
  if command -v flock >/dev/null; then
    exec {lock}>"$deps/lock"
    flock -n "$lock" || { say "waiting for another ./run in this folder"; flock "$lock"; }
  fi
}

# The lock would otherwise live as long as the program.
unlock_set_up() {
  if [[ -n ${lock:-} ]]; then exec {lock}>&-; fi
}

# need_space MEGABYTES WHAT FOLDER
need_space() {
  local free
  free=$(df -Pm "$3" | awk 'NR == 2 {print $4}')
  ((free >= $1)) || fail "$2 needs $1 MB of disk space in $3, and $free MB are free; make room and try again"
}

# missing_packages PACKAGE...: those that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

# as_root COMMAND...
as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif [[ -t 0 ]]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: these packages, or their like, must be there: $*"
    return
  fi
  local missing
  missing=$(missing_packages "$@" | tr '\n' ' ')
  missing=${missing% }
  [[ -n $missing ]] || return 0
  say "installing packages: $missing"
  if [[ $EUID -ne 0 ]] && ! command -v sudo >/dev/null; then
    fail "packages are missing and there is neither root nor sudo; as root: apt-get install $missing"
  fi
  need_space 1000 "installing packages" /usr
  local log=$deps/apt.log
  # shellcheck disable=SC2086 # one argument for each package
  if ! { apt_get update && apt_get install --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    fail "apt-get failed (see above and $log); check the network and apt's sources, or as root: apt-get install $missing"
  fi
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@" </dev/null
}

# LibTorch's library with the two packages it needs itself: a fifth of what pip would install by itself.
install_libtorch() {
  if [[ -n ${LibTorch_ROOT:-} ]]; then
    return
  fi
  local stamp=$deps/venv/.wheels
  if [[ -f $stamp && $(<"$stamp") == "${torch_wheels[*]}" ]]; then
    return
  fi
  say "installing LibTorch into .deps/venv: ${torch_wheels[*]}"
  need_space 3000 "LibTorch" "$deps"
  local log=$deps/pip.log
  # The wheels are unpacked on the same disk, for /tmp may be small.
  mkdir -p "$deps/tmp"
  if ! { make_venv && TMPDIR=$deps/tmp "$deps/venv/bin/pip" install --no-deps --no-input --no-cache-dir \
    --disable-pip-version-check --progress-bar off "${torch_wheels[@]}"; } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    fail "LibTorch could not be installed (see above and $log); check the network and pip's settings," \
      "or name a LibTorch of your own: LibTorch_ROOT=... ./run"
  fi
  rm -rf "$deps/tmp"
  echo "${torch_wheels[*]}" >"$stamp"
}

make_venv() {
  [[ -x $deps/venv/bin/pip ]] || python3 -m venv --clear "$deps/venv"
}

# configure FLAG...: CMake, where the last time was with other flags.
configure() {
  local stamp=$build/.configured flags
  flags="LibTorch_ROOT=${LibTorch_ROOT:-} $*"
  if [[ -f $build/build.ninja && -f $stamp && $(<"$stamp") == "$flags" ]]; then
    return
  fi
  say "configuring"
  local root=(-U LibTorch_ROOT)
  if [[ -n ${LibTorch_ROOT:-} ]]; then
    root=(-D "LibTorch_ROOT=$(realpath -m "$LibTorch_ROOT")")
  fi
  command -v c++ >/dev/null || fail "there is no C++ compiler; install g++ 12 or newer"
  local log=$deps/configure.log
  if ! (cd "$top" && cmake --preset release "${root[@]}" "$@") >"$log" 2>&1; then
    sed -nE '/^CMake Error/,/^(Call Stack|--|$)/{/^(Call Stack|--|$)/d;p}' "$log" >&2
    fail "configuring failed (see above and $log)"
  fi
  echo "$flags" >"$stamp"
}

# How many compilers at once: one a core, but 2 GB of memory for each.
num_jobs() {
  local cores available limit
  cores=$(nproc)
  available=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
  # A container's own limit, which /proc/meminfo does not know.
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [[ $limit =~ ^[0-9]+$ ]] && ((limit / 1048576 < available)); then
    available=$((limit / 1048576))
  fi
  local fit=$((available / 2000))
  ((fit < cores)) || fit=$cores
  ((fit > 0)) || fit=1
  echo "$fit"
}

# build_targets FOLDER TARGET...
build_targets() {
  local folder=$1
  shift
  if cmake --build "$folder" --target "$@" -- -n | grep -q 'no work to do'; then
    return
  fi
  say "building in ${folder#"$top"/} with $(num_jobs) jobs: $*"
  need_space 1500 "building" "$folder"
  cmake --build "$folder" --parallel "$(num_jobs)" --target "$@"
}

build_program() {
  # A build folder that ./run test made stays as it is: it holds the program, too.
  if ! grep -qs 'GPIPE_BUILD_TESTS=ON' "$build/.configured"; then
    configure -DGPIPE_BUILD_TESTS=OFF -DGPIPE_BUILD_BENCHMARKS=OFF -DGPIPE_BUILD_EXAMPLES=OFF
  else
    configure "${with_tests[@]}"
  fi
  build_targets "$build" gpipe || fail "the build failed (see above)"
}
