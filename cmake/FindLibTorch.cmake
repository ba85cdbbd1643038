# Finds LibTorch: a pip wheel's torch folder, or an unpacked LibTorch archive.
#
# The package's own TorchConfig.cmake is not used, for it asks for a CUDA toolkit also where the program needs none.
#
# Where it looks, first match wins:
#   1. LibTorch_ROOT (CMake or environment variable): LibTorch itself, a virtual environment, or a folder that holds
#      a torch/ or libtorch/ folder. If it is set, nothing else is searched. Torch_DIR serves in the same way.
#   2. every folder of CMAKE_PREFIX_PATH
#   3. LibTorch_FALLBACK, set by an installed gpipe to what it was built with
#   4. .deps/venv beside the sources, as ./run makes it
#   5. the torch package of the python3 on the PATH (located, not imported)
#
# Result: LibTorch_FOUND, LibTorch_VERSION, LibTorch_FOLDER and the imported target LibTorch::LibTorch.

# The sub-folders of a place that may be LibTorch: itself, an unpacked archive, site-packages, a virtual environment.
function(libtorch_candidates place result)
  file(GLOB environments LIST_DIRECTORIES true "${place}/lib/python3*/site-packages/torch"
       "${place}/lib/python3*/dist-packages/torch")
  set(${result} "${place}" "${place}/libtorch" "${place}/torch" ${environments} PARENT_SCOPE)
endfunction()

# Sets result to the first LibTorch in the given places, or to nothing.
function(libtorch_search result)
  set(${result} "" PARENT_SCOPE)
  foreach(place IN LISTS ARGN)
    libtorch_candidates("${place}" candidates)
    foreach(candidate IN LISTS candidates)
      if(EXISTS "${candidate}/include/ATen/ATen.h" AND EXISTS "${candidate}/lib/libtorch_cpu.so")
        get_filename_component(candidate "${candidate}" REALPATH)
        set(${result} "${candidate}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
endfunction()

# The place that the user named, as he named it.
function(libtorch_named_by_user place origin)
  if(LibTorch_ROOT)
    set(${place} "${LibTorch_ROOT}" PARENT_SCOPE)
    set(${origin} "LibTorch_ROOT" PARENT_SCOPE)
  elseif(DEFINED ENV{LibTorch_ROOT} AND NOT "$ENV{LibTorch_ROOT}" STREQUAL "")
    set(${place} "$ENV{LibTorch_ROOT}" PARENT_SCOPE)
    set(${origin} "the environment's LibTorch_ROOT" PARENT_SCOPE)
  elseif(Torch_DIR)
    # <LibTorch>/share/cmake/Torch
    get_filename_component(root "${Torch_DIR}/../../.." ABSOLUTE)
    set(${place} "${root}" PARENT_SCOPE)
    set(${origin} "the root of Torch_DIR (${Torch_DIR})" PARENT_SCOPE)
  endif()
endfunction()

# The folder of the torch package that python3 would import.
function(libtorch_of_python result)
  set(${result} "" PARENT_SCOPE)
  find_program(LibTorch_PYTHON NAMES python3 python)
  mark_as_advanced(LibTorch_PYTHON)
  if(NOT LibTorch_PYTHON)
    return()
  endif()
  execute_process(
    COMMAND "${LibTorch_PYTHON}" -c
            "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE folder
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

# The version, from version.py (wheel), build-version (archive) or the header.
function(libtorch_read_version folder result)
  set(version "")
  foreach(line_of "version.py:__version__ = '([0-9.]+)" "build-version:^([0-9.]+)"
                  "include/torch/headeronly/version.h:\"([0-9.]+)\""
                  "include/torch/csrc/api/include/torch/version.h:\"([0-9.]+)\"")
    string(REGEX MATCH "^([^:]+):(.+)$" _ "${line_of}")
    set(file "${folder}/${CMAKE_MATCH_1}")
    set(pattern "${CMAKE_MATCH_2}")
    if(NOT version AND EXISTS "${file}")
      file(READ "${file}" text)
      if(text MATCHES "${pattern}")
        set(version "${CMAKE_MATCH_1}")
      endif()
    endif()
  endforeach()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# The libraries that libtorch_cpu.so needs and the loader does not find, such as CUDA's of a wheel installed without
# its dependencies: better said here than by the linker.
function(libtorch_missing_libraries folder result)
  set(${result} "" PARENT_SCOPE)
  find_program(LibTorch_LDD ldd)
  mark_as_advanced(LibTorch_LDD)
  if(LibTorch_LDD)
    execute_process(
      COMMAND "${LibTorch_LDD}" "${folder}/lib/libtorch_cpu.so"
      OUTPUT_VARIABLE text
      ERROR_QUIET)
    string(REGEX MATCHALL "[^ \t\n]+ => not found" missing "${text}")
    list(TRANSFORM missing REPLACE " => not found" "")
    list(JOIN missing ", " missing)
    set(${result} "${missing}" PARENT_SCOPE)
  endif()
endfunction()

function(libtorch_add_target folder)
  if(TARGET LibTorch::LibTorch)
    return()
  endif()
  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION "${folder}/lib/libc10.so")
  add_library(LibTorch::LibTorch SHARED IMPORTED)
  set_target_properties(LibTorch::LibTorch PROPERTIES IMPORTED_LOCATION "${folder}/lib/libtorch_cpu.so")
  target_include_directories(LibTorch::LibTorch INTERFACE "${folder}/include"
                                                          "${folder}/include/torch/csrc/api/include")
  target_link_libraries(LibTorch::LibTorch INTERFACE LibTorch::c10)
  target_compile_features(LibTorch::LibTorch INTERFACE cxx_std_20)
  # A LibTorch built for the old std::string says so in its own package.
  set(config "${folder}/share/cmake/Torch/TorchConfig.cmake")
  if(EXISTS "${config}")
    file(STRINGS "${config}" old_abi REGEX "_GLIBCXX_USE_CXX11_ABI=0")
    if(old_abi)
      target_compile_definitions(LibTorch::LibTorch INTERFACE _GLIBCXX_USE_CXX11_ABI=0)
    endif()
  endif()
endfunction()

# Sets LibTorch_FOLDER, or reason.
macro(libtorch_find)
  set(LibTorch_FOLDER "")
  libtorch_named_by_user(named origin)
  if(named)
    libtorch_search(LibTorch_FOLDER "${named}")
    set(reason "${origin} is ${named}, but no LibTorch lies there: set it to a folder that has include/ATen/ATen.h and "
               "lib/libtorch_cpu.so (a pip wheel's torch folder, or an unpacked LibTorch archive).")
  else()
    libtorch_search(LibTorch_FOLDER ${CMAKE_PREFIX_PATH} ${LibTorch_FALLBACK} "${CMAKE_CURRENT_LIST_DIR}/../.deps/venv")
    if(NOT LibTorch_FOLDER)
      libtorch_of_python(LibTorch_of_python)
      libtorch_search(LibTorch_FOLDER ${LibTorch_of_python})
    endif()
    set(reason "LibTorch was not found: set LibTorch_ROOT to a pip wheel's torch folder or to an unpacked LibTorch "
               "archive (cmake -DLibTorch_ROOT=...), or run ./run build, which installs it into .deps/venv.")
  endif()
  string(CONCAT reason ${reason})
endmacro()

libtorch_find()
set(LibTorch_VERSION "")
if(LibTorch_FOLDER)
  libtorch_read_version("${LibTorch_FOLDER}" LibTorch_VERSION)
  libtorch_missing_libraries("${LibTorch_FOLDER}" missing)
  if(LibTorch_FIND_VERSION AND LibTorch_VERSION VERSION_LESS LibTorch_FIND_VERSION)
    set(reason "LibTorch ${LibTorch_VERSION} at ${LibTorch_FOLDER} is too old: gpipe needs ${LibTorch_FIND_VERSION} or \
newer. Install a newer torch there, or set LibTorch_ROOT to one.")
    set(LibTorch_FOLDER "")
  elseif(missing)
    set(reason "libtorch_cpu.so of ${LibTorch_FOLDER} needs ${missing}, not found. For a pip wheel, install the packages \
nvidia-cuda-runtime and nvidia-cuda-cupti of its CUDA version beside it (for torch 2.15: ==13.2.*).")
    set(LibTorch_FOLDER "")
  endif()
endif()

# Said in our own words: what find_package_handle_standard_args() makes of a reason is hard to read.
if(LibTorch_FOLDER)
  set(LibTorch_FOUND TRUE)
  if(NOT LibTorch_FIND_QUIETLY AND NOT TARGET LibTorch::LibTorch)
    message(STATUS "Found LibTorch ${LibTorch_VERSION}: ${LibTorch_FOLDER}")
  endif()
  libtorch_add_target("${LibTorch_FOLDER}")
else()
  set(LibTorch_FOUND FALSE)
  set(LibTorch_NOT_FOUND_MESSAGE "${reason}")
  if(LibTorch_FIND_REQUIRED)
    message(FATAL_ERROR "${reason}")
  elseif(NOT LibTorch_FIND_QUIETLY)
    message(STATUS "${reason}")
  endif()
endif()
