# Applies GPIPE_SANITIZE to every target below. LibTorch is not instrumented, so sanitizers go with GPIPE_TORCH=OFF.
if(GPIPE_SANITIZE)
  if(GPIPE_TORCH)
    message(FATAL_ERROR "GPIPE_SANITIZE needs -DGPIPE_TORCH=OFF: LibTorch is not instrumented, its reports would be noise.")
  endif()
  string(REPLACE ";" "," sanitizers "${GPIPE_SANITIZE}")
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sanitizers})
endif()
