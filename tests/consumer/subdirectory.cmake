# Builds a project that holds gpipe as a sub-folder. Without LibTorch, for that takes seconds instead of minutes.
include("${CMAKE_CURRENT_LIST_DIR}/steps.cmake")
build("${SOURCE}/tests/consumer/plan_project" "${WORK}/subdirectory" -D GPIPE_SOURCE=${SOURCE})
run("${WORK}/subdirectory/print_schedule")
