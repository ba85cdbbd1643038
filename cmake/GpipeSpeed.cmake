# A faster build where the tools are there: ccache and a fast linker.
if(GPIPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(GPIPE_CCACHE_PROGRAM ccache)
  mark_as_advanced(GPIPE_CCACHE_PROGRAM)
  if(GPIPE_CCACHE_PROGRAM)
    # Without this sloppiness ccache does not cache what is compiled with a precompiled header.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime;${GPIPE_CCACHE_PROGRAM}"
    )
  endif()
endif()

if(GPIPE_FAST_LINKER)
  find_program(GPIPE_LINKER_PROGRAM NAMES mold ld.mold ld.lld)
  mark_as_advanced(GPIPE_LINKER_PROGRAM)
  if(GPIPE_LINKER_PROGRAM MATCHES "mold$")
    add_link_options(-fuse-ld=mold)
  elseif(GPIPE_LINKER_PROGRAM)
    add_link_options(-fuse-ld=lld)
  endif()
endif()
