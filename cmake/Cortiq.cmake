# Functions that every CMakeLists.txt of the project uses: one place for warnings, include folders and test registration.

# cortiq_library(NAME SOURCES ... [DEPS ...]): a static library of ours.
function(cortiq_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  cortiq_target_defaults(${name})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
endfunction()

# cortiq_tool(NAME SOURCES ... [DEPS ...] [COMPONENT component]): a program that lands in bin/, here and where cortiq is installed;
# the component is `compiler` unless it is said to be `runtime`.
function(cortiq_tool name)
  cmake_parse_arguments(ARG "" "COMPONENT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_COMPONENT)
    set(ARG_COMPONENT compiler)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  cortiq_target_defaults(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  # MLIR's library lies in a folder of its own; an installed program finds it where it was built with it.
  set_target_properties(${name} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON CORTIQ_COMPONENT ${ARG_COMPONENT})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${ARG_COMPONENT})
endfunction()

# cortiq_unit_test(NAME SOURCES ... [DEPS ...]): a GoogleTest program, registered with ctest under the label "unit".
# Tests read the fixture folder from the environment variable CORTIQ_FIXTURES.
function(cortiq_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  cortiq_target_defaults(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME unit.${name} COMMAND ${name})
  set_tests_properties(unit.${name} PROPERTIES LABELS unit
    ENVIRONMENT "CORTIQ_FIXTURES=${CORTIQ_FIXTURES};CORTIQ_BIN=${CMAKE_BINARY_DIR}/bin")
endfunction()

function(cortiq_target_defaults name)
  target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR};${PROJECT_BINARY_DIR}>")
  target_compile_options(${name} PRIVATE -Wall -Wextra -Werror -Wno-unused-parameter -Wnon-virtual-dtor -Wimplicit-fallthrough)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 warns of its own headers (a string's insert, AVX-512 intrinsics that start with undefined lanes), and of vector
    # types as template arguments, whose alignment is their size, so that nothing is lost with their attributes.
    target_compile_options(${name} PRIVATE -Wno-restrict -Wno-maybe-uninitialized -Wno-uninitialized -Wno-ignored-attributes)
  endif()
  if(CORTIQ_SANITIZE)
    target_compile_options(${name} PUBLIC -fsanitize=${CORTIQ_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${name} PUBLIC -fsanitize=${CORTIQ_SANITIZE})
  endif()
endfunction()

# Everything that includes MLIR headers calls this: LLVM's folders and definitions stay off the rest of the project.
function(cortiq_uses_mlir name)
  target_include_directories(${name} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  separate_arguments(defs NATIVE_COMMAND ${LLVM_DEFINITIONS})
  target_compile_options(${name} PUBLIC ${defs})
  target_link_libraries(${name} PUBLIC MLIR LLVM)
endfunction()

# cortiq_reference_page(PAGE ARGS...): docs/PAGE.md in the build folder, from the texts of LLVM_TARGET_DEFINITIONS; ARGS say what TableGen takes.
function(cortiq_reference_page page)
  tablegen(MLIR ${page}.md ${ARGN} "-I${MLIR_INCLUDE_DIRS}")
  add_custom_command(
    OUTPUT ${PROJECT_BINARY_DIR}/docs/${page}.md
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/docs
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_BINARY_DIR}/${page}.md ${PROJECT_BINARY_DIR}/docs/${page}.md
    DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${page}.md)
  add_custom_target(cortiq_${page}_doc DEPENDS ${PROJECT_BINARY_DIR}/docs/${page}.md)
  add_dependencies(docs cortiq_${page}_doc)
endfunction()
