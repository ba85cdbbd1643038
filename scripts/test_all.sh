# shellcheck shell=bash disable=SC2034,SC2154 # variables pass between this file and ./run
# All tests, for ./run test: sourced, not run. In: top, build, and the functions of setup.sh.

with_tests=(-DGPIPE_BUILD_TESTS=ON -DGPIPE_BUILD_BENCHMARKS=ON -DGPIPE_BUILD_EXAMPLES=ON)
passed=0
failed=0

# count LOG: adds what ctest's closing line says; a run without one counts as one failure.
count() {
  local numbers
  if numbers=$(sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests failed out of ([0-9]+).*/\1 \2/p' "$1") && [[ -n $numbers ]]; then
    failed=$((failed + ${numbers% *}))
    passed=$((passed + ${numbers#* } - ${numbers% *}))
  else
    failed=$((failed + 1))
  fi
}

# run_tests FOLDER CTEST-FLAG...
run_tests() {
  local folder=$1 log=$1/ctest.log
  shift
  # ThreadSanitizer of GCC 12 cannot place its shadow memory where the kernel spreads addresses widely.
  local fixed=()
  if setarch --addr-no-randomize true 2>/dev/null; then
    fixed=(setarch --addr-no-randomize)
  fi
  say "testing in ${folder#"$top"/} $*"
  # The log has them all; here it says what fails.
  "${fixed[@]}" ctest --test-dir "$folder" --no-tests=error --output-on-failure "$@" 2>&1 | tee "$log" |
    grep --line-buffered -vE '^ *Start |^ *[0-9]+/[0-9]+ Test +#.* Passed |^$' || true
  count "$log"
}

# sanitize PRESET: base, plan and the executor, built and tested under sanitizers.
sanitize() {
  local folder=$top/build/$1
  if (cd "$top" && cmake --preset "$1") >"$deps/configure-$1.log" 2>&1 && build_targets "$folder" all; then
    run_tests "$folder" -j "$(nproc)"
  else
    say "$1 does not build (see above and $deps/configure-$1.log)"
    failed=$((failed + 1))
  fi
}

# Cheap things first, so that a failure shows early; all of it runs in any case.
test_all() {
  set_up "${data_packages[@]}" "${test_packages[@]}"
  configure "${with_tests[@]}"
  run_tests "$build" -L lint
  sanitize asan
  sanitize tsan
  if build_targets "$build" all; then
    run_tests "$build" -LE lint
  else
    say "the build failed (see above)"
    failed=$((failed + 1))
  fi
  echo "$passed passed, $failed failed"
  ((failed == 0))
}
