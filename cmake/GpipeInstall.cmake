# Installs libraries, headers and the package for find_package(gpipe). The libraries without LibTorch and those with it
# are two export sets, so that a project can ask for the former alone: find_package(gpipe COMPONENTS plan).
include(CMakePackageConfigHelpers)
set(gpipe_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gpipe")

function(gpipe_install_libraries export)
  install(TARGETS ${ARGN} EXPORT ${export} FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(
    EXPORT ${export}
    NAMESPACE gpipe::
    DESTINATION "${gpipe_package_dir}")
endfunction()

gpipe_install_libraries(gpipePlanTargets gpipe_base gpipe_plan gpipe_executor)
if(GPIPE_TORCH)
  gpipe_install_libraries(gpipeTorchTargets gpipe_core gpipe_models gpipe_data)
  install(FILES cmake/FindLibTorch.cmake DESTINATION "${gpipe_package_dir}")
endif()
if(TARGET gpipe)
  install(TARGETS gpipe)
endif()

configure_package_config_file(
  cmake/gpipeConfig.cmake.in "${PROJECT_BINARY_DIR}/gpipeConfig.cmake" INSTALL_DESTINATION "${gpipe_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/gpipeConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/gpipeConfig.cmake" "${PROJECT_BINARY_DIR}/gpipeConfigVersion.cmake"
        DESTINATION "${gpipe_package_dir}")
