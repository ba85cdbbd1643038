# What FindLibTorch.cmake finds and says, over folders that only look like LibTorch.
include("${CMAKE_CURRENT_LIST_DIR}/steps.cmake")
unset(ENV{LibTorch_ROOT})
set(configure "${CMAKE_COMMAND}" -S "${SOURCE}/tests/consumer/finder_project" -B "${WORK}/finder" -D
              GPIPE_SOURCE=${SOURCE})

# make_fake(FOLDER VERSION_FILE TEXT): headers and libraries in name, and a file that tells the version.
function(make_fake folder version_file text)
  file(REMOVE_RECURSE "${folder}")
  foreach(file include/ATen/ATen.h lib/libtorch_cpu.so lib/libc10.so)
    file(WRITE "${folder}/${file}" "")
  endforeach()
  file(WRITE "${folder}/${version_file}" "${text}")
endfunction()

function(expect_found place version)
  file(REMOVE_RECURSE "${WORK}/finder")
  execute_process(COMMAND ${configure} ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT output MATCHES "LibTorch ${version} at ${place}\n")
    message(FATAL_ERROR "should have found LibTorch ${version} at ${place}:\n${output}")
  endif()
endfunction()

function(expect_refused pattern)
  file(REMOVE_RECURSE "${WORK}/finder")
  expect_failure("${pattern}" ${configure} ${ARGN})
endfunction()

make_fake("${WORK}/zip/libtorch" build-version "2.11.0+cpu\n")
make_fake("${WORK}/venv/lib/python3.11/site-packages/torch" version.py "__version__ = '2.15.1+cu132'\n")
make_fake("${WORK}/old/libtorch" build-version "2.1.0+cpu\n")
set(wheel "${WORK}/venv/lib/python3.11/site-packages/torch")

expect_found("${WORK}/zip/libtorch" 2.11.0 -D LibTorch_ROOT=${WORK}/zip/libtorch)
expect_found("${WORK}/zip/libtorch" 2.11.0 -D LibTorch_ROOT=${WORK}/zip)
expect_found("${WORK}/zip/libtorch" 2.11.0 -D CMAKE_PREFIX_PATH=${WORK}/zip/libtorch)
expect_found("${WORK}/zip/libtorch" 2.11.0 -D Torch_DIR=${WORK}/zip/libtorch/share/cmake/Torch)
expect_found("${wheel}" 2.15.1 -D LibTorch_ROOT=${WORK}/venv)
expect_found("${wheel}" 2.15.1 -D LibTorch_ROOT=${wheel})
expect_refused("LibTorch 2.1.0 at [^ ]*/old/libtorch is too old: gpipe needs 2.11" -D LibTorch_ROOT=${WORK}/old)
expect_refused("LibTorch_ROOT is /nowhere, but no LibTorch lies there: set it" -D LibTorch_ROOT=/nowhere)
expect_refused("Torch_DIR [(]/nowhere/share/cmake/Torch[)] is /nowhere, but no LibTorch" -D Torch_DIR=/nowhere/share/cmake/Torch)
# The environment names one too, and CMake's variable goes first.
set(ENV{LibTorch_ROOT} "${WORK}/zip")
expect_found("${WORK}/zip/libtorch" 2.11.0)
expect_found("${wheel}" 2.15.1 -D LibTorch_ROOT=${WORK}/venv)
