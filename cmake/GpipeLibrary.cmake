# What the libraries and programs of this project have in common.

# gpipe_configure_target(TARGET): C++20 without extensions, our warnings.
function(gpipe_configure_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:gpipe_warnings>)
endfunction()

# gpipe_add_library(NAME): the library gpipe_NAME, known to users as gpipe::NAME. Its sources and headers follow in the
# folder's own lists:
#   target_sources(gpipe_NAME PRIVATE a.cpp b.cpp)
#   gpipe_headers(gpipe_NAME a.h b.h)
function(gpipe_add_library name)
  add_library(gpipe_${name})
  add_library(gpipe::${name} ALIAS gpipe_${name})
  # The language must be given for as long as a library has headers alone.
  set_target_properties(gpipe_${name} PROPERTIES EXPORT_NAME ${name} LINKER_LANGUAGE CXX)
  gpipe_configure_target(gpipe_${name})
  target_include_directories(
    gpipe_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

# gpipe_headers(TARGET FILE...): headers that are installed with the target, as <gpipe/folder/file.h>.
function(gpipe_headers target)
  get_target_property(type ${target} TYPE)
  set(scope PUBLIC)
  if(type STREQUAL "INTERFACE_LIBRARY")
    set(scope INTERFACE)
  endif()
  target_sources(
    ${target}
    ${scope}
    FILE_SET
    HEADERS
    BASE_DIRS
    "${PROJECT_SOURCE_DIR}"
    FILES
    ${ARGN})
endfunction()
