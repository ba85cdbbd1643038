# gpipe_warnings: the warnings every target of ours is compiled with. They become errors only in the presets.
add_library(gpipe_warnings INTERFACE)
target_compile_options(
  gpipe_warnings
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            -Wcast-align
            -Wunused
            # false alarms of GCC 12 on std::string concatenation
            $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
            $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
