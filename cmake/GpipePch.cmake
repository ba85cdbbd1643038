# One precompiled <torch/torch.h> for every target that includes LibTorch: it brings a file from 20 s to half of that.
# A header compiled in advance serves only where the compiler's flags are the same, so position-independent builds, where
# libraries (-fPIC) and programs (-fPIE) differ, do without.
set(gpipe_use_pch ${GPIPE_PCH})
if(BUILD_SHARED_LIBS OR CMAKE_POSITION_INDEPENDENT_CODE)
  set(gpipe_use_pch OFF)
endif()

if(gpipe_use_pch)
  file(CONFIGURE OUTPUT torch_pch.cpp CONTENT "// Empty: this target is built for its precompiled header.\n")
  add_library(gpipe_torch_pch OBJECT "${CMAKE_CURRENT_BINARY_DIR}/torch_pch.cpp")
  gpipe_configure_target(gpipe_torch_pch)
  target_link_libraries(gpipe_torch_pch PRIVATE LibTorch::LibTorch)
  target_precompile_headers(gpipe_torch_pch PRIVATE <torch/torch.h>)
endif()

# gpipe_use_torch(TARGET): gives a target that links LibTorch the precompiled header.
function(gpipe_use_torch target)
  if(gpipe_use_pch)
    target_precompile_headers(${target} REUSE_FROM gpipe_torch_pch)
  endif()
endfunction()
