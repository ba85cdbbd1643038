# gpipe_add_test(NAME
#                SOURCES FILE...      test sources; one binary for each layer
#                LIBS TARGET...       what is tested
#                LABELS LABEL...      for ctest -L
#                [TIMEOUT SECONDS]    for each ctest entry; 120 unless said
#                [TORCH])             links LibTorch
#
# With TORCH, ctest gets one entry for each test suite, since to load LibTorch for each case would take longer than the
# cases. Without, one for each case.
include(GoogleTest)

function(gpipe_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "TIMEOUT" "SOURCES;LIBS;LABELS")
  if(NOT arg_SOURCES OR (arg_TORCH AND NOT GPIPE_TORCH))
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  gpipe_configure_target(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE GPIPE_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden"
                                             GPIPE_CONFIG_DIR="${PROJECT_SOURCE_DIR}/configs")
  if(arg_TORCH)
    gpipe_use_torch(${name})
    gpipe_add_suites(${name} "${arg_LABELS}" ${arg_TIMEOUT} ${arg_SOURCES})
  else()
    gtest_discover_tests(
      ${name}
      NO_PRETTY_VALUES # the names say the parameters
      DISCOVERY_MODE PRE_TEST
      PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  endif()
endfunction()

# One ctest entry for each suite named in the sources. A suite with parameters is run under all its prefixes.
function(gpipe_add_suites name labels timeout)
  set(suites)
  foreach(source IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    file(READ "${source}" text)
    string(REGEX MATCHALL "\n(TYPED_)?TEST(_F|_P)?\\([ \n]*[A-Za-z0-9_]+" heads "${text}")
    foreach(head IN LISTS heads)
      string(REGEX MATCH "[A-Za-z0-9_]+$" suite "${head}")
      list(APPEND suites ${suite})
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES suites)
  foreach(suite IN LISTS suites)
    add_test(NAME ${name}.${suite} COMMAND ${name} --gtest_filter=${suite}.*:*/${suite}.*:${suite}/*:*/${suite}/*)
    set_tests_properties(
      ${name}.${suite}
      PROPERTIES LABELS "${labels}"
                 TIMEOUT ${timeout}
                 FAIL_REGULAR_EXPRESSION "Running 0 tests")
  endforeach()
endfunction()
