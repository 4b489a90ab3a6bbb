// The protocol, all numbers 64 bits: code size, code; size of the arguments, how many of them are pointers, arguments;
// number of regions, and for each its address here, its size, whether it is writable, its bytes. Back come a bit for
// each callee-saved register that changed (x19 to x28, d8 to d15) and the writable regions.

#include "test/unit/aarch64/emulator.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace cortiq::testing {
namespace {

bool write_all(int to, const void* data, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t put = write(to, at, bytes);
    if (put <= 0)
      return false;
    at += put;
    bytes -= static_cast<size_t>(put);
  }
  return true;
}

bool read_all(int from, void* data, size_t bytes) {
  auto* at = static_cast<uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t got = read(from, at, bytes);
    if (got <= 0)
      return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool write_number(int to, uint64_t value) {
  return write_all(to, &value, sizeof(value));
}

} // namespace

std::string Emulator::missing() {
#ifdef CORTIQ_AARCH64_EMULATOR
  return "";
#else
  return "qemu's user emulation and the AArch64 cross compiler are needed (tools/setup installs both)";
#endif
}

Emulator::~Emulator() {
  stop();
}

std::string Emulator::start() {
#ifdef CORTIQ_AARCH64_EMULATOR
  int in[2], out[2];
  if (pipe(in) != 0 || pipe(out) != 0)
    return "no pipe";
  signal(SIGPIPE, SIG_IGN);
  process_ = fork();
  if (process_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    for (int fd : {in[0], in[1], out[0], out[1]})
      close(fd);
    execl(CORTIQ_AARCH64_EMULATOR, CORTIQ_AARCH64_EMULATOR, "-cpu", cpu_.c_str(), CORTIQ_KERNEL_PROCESS,
          static_cast<char*>(nullptr));
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
  return process_ < 0 ? "no process" : "";
#else
  return missing();
#endif
}

void Emulator::stop() {
  if (process_ < 0)
    return;
  close(to_);
  close(from_);
  int status = 0;
  waitpid(process_, &status, 0);
  process_ = -1;
}

std::string Emulator::call(const codegen::MachineCode& code, std::span<const uint64_t> args, size_t pointers,
                           std::span<const Region> regions) {
  if (process_ < 0)
    if (std::string error = start(); !error.empty())
      return error;
  std::string error = exchange(code, args, pointers, regions);
  if (!error.empty())
    stop();
  return error;
}

std::string Emulator::exchange(const codegen::MachineCode& code, std::span<const uint64_t> args, size_t pointers,
                               std::span<const Region> regions) {
  bool sent = write_number(to_, code.bytes.size()) && write_all(to_, code.bytes.data(), code.bytes.size()) &&
              write_number(to_, args.size_bytes()) && write_number(to_, pointers) &&
              write_all(to_, args.data(), args.size_bytes()) && write_number(to_, regions.size());
  for (const Region& region : regions)
    sent = sent && write_number(to_, reinterpret_cast<uint64_t>(region.data)) && write_number(to_, region.bytes) &&
           write_number(to_, region.writable) && write_all(to_, region.data, region.bytes);
  uint64_t changed = 0;
  bool received = sent && read_all(from_, &changed, sizeof(changed));
  for (const Region& region : regions)
    if (region.writable)
      received = received && read_all(from_, region.data, region.bytes);
  if (!received) {
    int status = 0;
    kill(process_, SIGKILL);
    waitpid(process_, &status, 0);
    close(to_);
    close(from_);
    process_ = -1;
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return signal == SIGILL    ? "the processor " + cpu_ + " refused an instruction"
           : signal == SIGSEGV ? "memory outside of what the kernel was given"
                               : "the emulated process ended, signal " + std::to_string(signal);
  }
  std::string kept;
  for (int i = 0; i < 18; ++i)
    if (changed >> i & 1)
      kept += (kept.empty() ? "" : ", ") + (i < 10 ? "x" + std::to_string(19 + i) : "d" + std::to_string(i - 2));
  return kept.empty() ? "" : "callee-saved registers not kept: " + kept;
}

} // namespace cortiq::testing
