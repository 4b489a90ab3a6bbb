# `cpack -G DEB` and `cpack -G TGZ` in the build folder: one package of what runs artifacts (cortiq), one of what makes them
# (cortiq-compiler).
set(CPACK_PACKAGE_NAME cortiq)
set(CPACK_PACKAGE_VENDOR cortiq)
set(CPACK_PACKAGE_CONTACT "The cortiq developers <developers@cortiq.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Runs quantized language models, compiled for this machine")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime)
if(CORTIQ_BUILD_COMPILER)
  list(APPEND CPACK_COMPONENTS_ALL compiler)
endif()
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_THREADS 0)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # which libraries, and how old they may be, is read from the programs
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME cortiq)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "Runs quantized language models, compiled for this machine: programs, library, headers")
set(CPACK_DEBIAN_COMPILER_PACKAGE_NAME cortiq-compiler)
set(CPACK_DEBIAN_COMPILER_DESCRIPTION "Compiles, converts and inspects quantized language models for cortiq")
set(CPACK_DEBIAN_COMPILER_PACKAGE_RECOMMENDS cortiq)

# What the programs of each package contain, as CycloneDX, read from the build when they are installed.
find_package(Python3 COMPONENTS Interpreter)
find_program(CORTIQ_DPKG_QUERY dpkg-query)
if(Python3_FOUND AND CORTIQ_DPKG_QUERY AND CMAKE_GENERATOR STREQUAL Ninja AND NOT CMAKE_CROSSCOMPILING)
  # cortiq_sbom(COMPONENT PACKAGE FILE...): FILEs as ninja names them.
  function(cortiq_sbom component package)
    install(CODE "file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}\")
execute_process(COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/cmake/sbom.py --build ${CMAKE_BINARY_DIR} --name ${package}
  --version ${PROJECT_VERSION} --crate ${PROJECT_SOURCE_DIR}/runtime/text/rust
  --out \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}/${package}.cdx.json\" ${ARGN} RESULT_VARIABLE failed)
if(failed)
  message(WARNING \"${package} is installed without its bill of materials\")
endif()"
      COMPONENT ${component})
  endfunction()
  cortiq_sbom(runtime cortiq bin/cortiq-bench bin/cortiq-run bin/cortiq-serve lib/libcortiq.so.${PROJECT_VERSION})
  if(CORTIQ_BUILD_COMPILER)
    cortiq_sbom(compiler cortiq-compiler bin/cortiq-compile bin/cortiq-convert bin/cortiq-inspect bin/cortiq-opt bin/cortiq-skill)
  endif()
else()
  message(STATUS "No bill of materials in the packages: that takes python3, ninja and dpkg-query")
endif()
foreach(part runtime:cortiq compiler:cortiq-compiler)
  string(REPLACE ":" ";" part ${part})
  list(GET part 0 component)
  list(GET part 1 package)
  if(component STREQUAL runtime OR CORTIQ_BUILD_COMPILER)
    # Debian's place and name for it.
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} RENAME copyright COMPONENT ${component})
    install(FILES ${PROJECT_SOURCE_DIR}/SECURITY.md DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${component})
  endif()
endforeach()
include(CPack)
