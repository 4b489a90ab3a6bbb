# Manual pages and shell completions, made of each program's own option tree (PROGRAM --help-json) when it is built, and installed where
# man, bash, zsh and fish look for them.

find_package(Python3 QUIET COMPONENTS Interpreter)
set(CORTIQ_PAGES ON)
if(CMAKE_CROSSCOMPILING OR CORTIQ_SANITIZE OR NOT Python3_FOUND)
  set(CORTIQ_PAGES OFF)
  message(STATUS "Manual pages and completions are left out: they need python3 and programs that run here")
endif()
if(CORTIQ_PAGES)
  add_custom_target(pages ALL)
endif()

# cortiq_tool_pages(NAME): those of a program of cortiq_tool().
function(cortiq_tool_pages name)
  if(NOT CORTIQ_PAGES)
    return()
  endif()
  set(share ${PROJECT_BINARY_DIR}/share)
  set(pages
    man/man1/${name}.1
    bash-completion/completions/${name}
    zsh/site-functions/_${name}
    fish/vendor_completions.d/${name}.fish)
  list(TRANSFORM pages PREPEND ${share}/ OUTPUT_VARIABLE outputs)
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/lib/pages.py $<TARGET_FILE:${name}> ${PROJECT_VERSION} ${share}
    DEPENDS ${name} ${PROJECT_SOURCE_DIR}/tools/lib/pages.py
    COMMENT "Manual page and completions of ${name}"
    VERBATIM)
  add_custom_target(${name}-pages DEPENDS ${outputs})
  add_dependencies(pages ${name}-pages)
  get_target_property(component ${name} CORTIQ_COMPONENT)
  foreach(page ${pages})
    get_filename_component(folder ${page} DIRECTORY)
    install(FILES ${share}/${page} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} COMPONENT ${component})
  endforeach()
endfunction()
