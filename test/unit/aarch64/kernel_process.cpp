// Runs on the emulated processor: takes kernels and their data from standard input, calls them, writes back what they
// wrote. Built with the cross compiler; emulator.cpp is the other end and states the protocol.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

void read_all(void* to, size_t bytes) {
  auto* at = static_cast<uint8_t*>(to);
  while (bytes > 0) {
    const ssize_t got = read(STDIN_FILENO, at, bytes);
    if (got <= 0)
      _exit(0); // the other end is done
    at += got;
    bytes -= static_cast<size_t>(got);
  }
}

void write_all(const void* from, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(from);
  while (bytes > 0) {
    const ssize_t put = write(STDOUT_FILENO, at, bytes);
    if (put <= 0)
      _exit(1);
    at += put;
    bytes -= static_cast<size_t>(put);
  }
}

uint64_t read_number() {
  uint64_t value;
  read_all(&value, sizeof(value));
  return value;
}

/// Memory that ends at a page which traps.
struct Region {
  uint64_t host, bytes, writable;
  uint8_t* data;
  void* map;
  size_t mapped;

  void allocate() {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), usable = (bytes + page - 1) / page * page;
    mapped = usable + page;
    map = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(static_cast<uint8_t*>(map) + usable, page, PROT_NONE);
    data = static_cast<uint8_t*>(map) + usable - bytes;
  }
  void release() const { munmap(map, mapped); }
};

extern "C" {
uint64_t seen_scalars[10], seen_vectors[8];
/// Calls kernel(args) with patterns in the registers that a callee keeps, and stores what is in them afterwards.
void call_with_patterns(const void* kernel, const void* args);
}

asm(R"(
  .text
  .global call_with_patterns
call_with_patterns:
  stp x29, x30, [sp, #-176]!
  mov x29, sp
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, x0
  mov x0, x1
  mov x19, #19
  mov x20, #20
  mov x21, #21
  mov x22, #22
  mov x23, #23
  mov x24, #24
  mov x25, #25
  mov x26, #26
  mov x27, #27
  mov x28, #28
  fmov d8, x19
  fmov d9, x20
  fmov d10, x21
  fmov d11, x22
  fmov d12, x23
  fmov d13, x24
  fmov d14, x25
  fmov d15, x26
  blr x9
  adrp x9, seen_scalars
  add x9, x9, :lo12:seen_scalars
  stp x19, x20, [x9]
  stp x21, x22, [x9, #16]
  stp x23, x24, [x9, #32]
  stp x25, x26, [x9, #48]
  stp x27, x28, [x9, #64]
  adrp x9, seen_vectors
  add x9, x9, :lo12:seen_vectors
  stp d8, d9, [x9]
  stp d10, d11, [x9, #16]
  stp d12, d13, [x9, #32]
  stp d14, d15, [x9, #48]
  ldp x19, x20, [sp, #16]
  ldp x21, x22, [sp, #32]
  ldp x23, x24, [sp, #48]
  ldp x25, x26, [sp, #64]
  ldp x27, x28, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x29, x30, [sp], #176
  ret
)");

uint64_t changed_registers() {
  uint64_t changed = 0;
  for (uint64_t i = 0; i < 10; ++i)
    changed |= uint64_t{seen_scalars[i] != 19 + i} << i;
  for (uint64_t i = 0; i < 8; ++i)
    changed |= uint64_t{seen_vectors[i] != 19 + i} << (10 + i);
  return changed;
}

void serve_one() {
  const uint64_t code_bytes = read_number();
  void* code = mmap(nullptr, code_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  read_all(code, code_bytes);
  mprotect(code, code_bytes, PROT_READ | PROT_EXEC);
  __builtin___clear_cache(static_cast<char*>(code), static_cast<char*>(code) + code_bytes);

  std::vector<uint64_t> args(read_number() / 8);
  const uint64_t pointers = read_number();
  read_all(args.data(), args.size() * 8);
  std::vector<Region> regions(read_number());
  for (Region& region : regions) {
    region.host = read_number();
    region.bytes = read_number();
    region.writable = read_number();
    region.allocate();
    read_all(region.data, region.bytes);
  }
  for (uint64_t i = 0; i < pointers; ++i)
    for (const Region& region : regions)
      if (args[i] >= region.host && args[i] < region.host + region.bytes) {
        args[i] = reinterpret_cast<uint64_t>(region.data) + (args[i] - region.host);
        break;
      }
  call_with_patterns(code, args.data());
  const uint64_t changed = changed_registers();
  write_all(&changed, sizeof(changed));
  for (const Region& region : regions) {
    if (region.writable)
      write_all(region.data, region.bytes);
    region.release();
  }
  munmap(code, code_bytes);
}

} // namespace

int main() {
  for (;;)
    serve_one();
}
