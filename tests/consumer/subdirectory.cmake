# Builds a project that holds gpipe as a sub-folder. Built without LibTorch, for that takes seconds instead of minutes;
# with it, the project must configure.
include("${CMAKE_CURRENT_LIST_DIR}/steps.cmake")
build("${SOURCE}/tests/consumer/plan_project" "${WORK}/subdirectory" -D GPIPE_SOURCE=${SOURCE} -D GPIPE_TORCH=OFF)
run("${WORK}/subdirectory/print_schedule")

if(TORCH)
  file(REMOVE_RECURSE "${WORK}/subdirectory_torch")
  run("${CMAKE_COMMAND}" -S "${SOURCE}/tests/consumer/plan_project" -B "${WORK}/subdirectory_torch" -G Ninja -D
      GPIPE_SOURCE=${SOURCE} -D LibTorch_ROOT=${LibTorch_ROOT})
endif()
