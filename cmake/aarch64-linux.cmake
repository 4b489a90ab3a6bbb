# Toolchain file: programs for 64-bit Arm, built with Debian's cross compiler (the preset aarch64 uses it).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Programs of the build itself (flatc, cargo) run here; libraries have to be the target's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# What is headers and a program of the build only may be this machine's.
set(FlatBuffers_DIR /usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/cmake/flatbuffers CACHE PATH "")
find_program(CORTIQ_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(CORTIQ_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${CORTIQ_QEMU})
endif()
