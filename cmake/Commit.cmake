# Writes OUT, a header with the commit that SOURCE is checked out at: run at every build, the file changes only when the commit does.
# COMMIT names one where there is no repository, as for a build from a tarball.
if(NOT COMMIT)
  set(COMMIT unknown)
  find_program(GIT git)
  if(GIT)
    execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    file(REAL_PATH ${SOURCE} source)
    if(top STREQUAL source) # not a repository that happens to lie around it
      execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCE} describe --always --abbrev=40 --exclude * --dirty=+
        OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
      if(NOT failed)
        set(COMMIT ${found})
      endif()
    endif()
  endif()
endif()
set(text "#pragma once\n#define CORTIQ_COMMIT \"${COMMIT}\"\n")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
