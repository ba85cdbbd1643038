# Installs gpipe, then builds and runs projects against the install tree.
include("${CMAKE_CURRENT_LIST_DIR}/steps.cmake")
set(prefix "${WORK}/prefix")
file(REMOVE_RECURSE "${prefix}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}" --config ${CONFIG})

# Without LibTorch: nothing of it may be asked for.
build("${SOURCE}/tests/consumer/plan_project" "${WORK}/plan_project" -D CMAKE_PREFIX_PATH=${prefix} -D
      LibTorch_ROOT=/nowhere)
run("${WORK}/plan_project/print_schedule")

if(TORCH)
  build("${SOURCE}/examples/cmake_project" "${WORK}/cmake_project" -D CMAKE_PREFIX_PATH=${prefix})
  run("${WORK}/cmake_project/train")
  expect_failure("LibTorch_ROOT is /nowhere, but no LibTorch lies there" "${CMAKE_COMMAND}" -S
                 "${SOURCE}/examples/cmake_project" -B "${WORK}/wrong" -D CMAKE_PREFIX_PATH=${prefix} -D
                 LibTorch_ROOT=/nowhere)
endif()
