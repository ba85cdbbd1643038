# Steps that the consumer tests share. In: SOURCE, BUILD, WORK, TORCH, LibTorch_ROOT, CONFIG.

# A minimal machine has no make.
set(ENV{CMAKE_GENERATOR} Ninja)

# run(COMMAND...): fails the test with the command's output.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message(STATUS "${output}")
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${result}): ${command}")
  endif()
endfunction()

# expect_failure(PATTERN COMMAND...): the command must fail with an output that matches, line breaks aside.
function(expect_failure pattern)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(result EQUAL 0)
    message(FATAL_ERROR "should have failed with \"${pattern}\":\n${output}")
  endif()
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "the message should hold \"${pattern}\":\n${output}")
  endif()
endfunction()

# build(PROJECT FOLDER ARGUMENT...): configures and builds a project from scratch.
function(build project folder)
  file(REMOVE_RECURSE "${folder}")
  run("${CMAKE_COMMAND}" -S "${project}" -B "${folder}" -G Ninja -D CMAKE_BUILD_TYPE=${CONFIG} ${ARGN})
  run("${CMAKE_COMMAND}" --build "${folder}")
endfunction()
