#include "runtime/loader/mapped_artifact.h"

#include <cerrno>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "formats/checked_math.h"
#include "formats/file_guard.h"
#include "formats/input_files.h"
#include "formats/quote.h"

namespace cortiq::runtime {
namespace {

using formats::ArtifactHeader;
using formats::ArtifactSection;

#if defined(__x86_64__)
constexpr uint32_t kThisMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kThisMachine = EM_AARCH64;
#else
constexpr uint32_t kThisMachine = EM_NONE;
#endif

#if defined(MFD_EXEC)
constexpr unsigned kExecutableMemory = MFD_EXEC;
#else
constexpr unsigned kExecutableMemory = 0x10; // MFD_EXEC of Linux 6.3
#endif

std::string machine_name(uint32_t machine) {
  if (machine == EM_X86_64)
    return "x86-64";
  if (machine == EM_AARCH64)
    return "AArch64";
  return "ELF machine " + std::to_string(machine);
}

Status system_error(const char* what, int error) {
  return io_error(std::string(what) + ": " + std::strerror(error));
}

/// Closes a descriptor at the end of its scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
};

bool same_hash(const formats::Hash256& hash, const uint8_t* stored) {
  return std::memcmp(hash.data(), stored, hash.size()) == 0;
}

} // namespace

StatusOr<MappedArtifact> MappedArtifact::open(const std::string& path, bool sealed) {
  const std::string name = formats::quote(path);
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0)
    return system_error(("cannot open " + name).c_str(), errno);
  struct stat info;
  if (fstat(file.fd, &info) != 0)
    return system_error(("cannot read " + name).c_str(), errno);
  if (!S_ISREG(info.st_mode))
    return io_error(name + " is not a regular file");
  formats::remember_input(file.fd);
  if (static_cast<uint64_t>(info.st_size) < formats::kArtifactPage)
    return invalid(name + " is not an artifact: it has " + std::to_string(info.st_size) +
                   " bytes, fewer than its header");
  MappedArtifact out;
  out.bytes_ = static_cast<uint64_t>(info.st_size);
  void* base = mmap(nullptr, out.bytes_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (base == MAP_FAILED)
    return system_error(("cannot map " + name).c_str(), errno);
  out.base_ = static_cast<uint8_t*>(base);
  formats::watch_mapping(out.base_, out.bytes_, path);
  Descriptor memory{-1};
  if (sealed)
    if (Status status = out.seal(memory.fd); !status.ok())
      return status.with_prefix(name);
  std::memcpy(&out.header_, out.base_ + formats::kHeaderOffset, sizeof(ArtifactHeader));
  if (Status status = out.check(path); !status.ok())
    return status.with_prefix(name);
  if (Status status = out.map_code(sealed ? memory.fd : file.fd); !status.ok())
    return status.with_prefix(name);
  formats::watch_mapping(out.code_, out.code_bytes_, path);
  return out;
}

Status MappedArtifact::check(const std::string& path) const {
  const ArtifactHeader& h = header_;
  if (std::memcmp(base_, ELFMAG, SELFMAG) != 0 || std::memcmp(h.magic, formats::kArtifactMagic, sizeof(h.magic)) != 0)
    return invalid("it is not an artifact; cortiq-compile makes one of a model: cortiq-compile MODEL -o OUT.cqa");
  if (h.schema_version != formats::kArtifactSchemaVersion)
    return unsupported("it has schema version " + std::to_string(h.schema_version) + ", this program reads version " +
                       std::to_string(formats::kArtifactSchemaVersion) + "; compile the model again");
  if (!same_hash(formats::header_page_hash({base_, formats::kArtifactPage}), h.header_hash))
    return invalid("its header is damaged (the hash differs); compile the model again");
  if (h.file_bytes != bytes_)
    return invalid("it is cut or extended: " + std::to_string(bytes_) + " bytes, its header says " +
                   std::to_string(h.file_bytes));
  uint64_t end = formats::kArtifactPage;
  for (const formats::ArtifactExtent& extent : h.sections) {
    // In file order, none inside page 0; FlatBuffers and kernels need the alignment.
    if (!formats::range_fits(extent.offset, extent.bytes, bytes_) || extent.offset < end || extent.offset % 64 != 0)
      return invalid("a section of its header lies outside the file or over another");
    end = extent.offset + extent.bytes;
  }
  const formats::ArtifactExtent weights = h.sections[static_cast<uint32_t>(ArtifactSection::kWeights)];
  if (weights.offset % formats::kArtifactPage != 0 || weights.offset + weights.bytes != bytes_)
    return invalid("its weights section is not the page-aligned end of the file");
  const std::span<const uint8_t> image(base_ + formats::kArtifactPage, weights.offset - formats::kArtifactPage);
  if (!same_hash(formats::hash256(image), h.image_hash))
    return invalid("it is damaged (the hash of code, manifest and program differs); compile the model again");
  return {};
}

Status MappedArtifact::check_machine() const {
  if (header_.machine == kThisMachine)
    return {};
  return unsupported("its code is for " + machine_name(header_.machine) + ", this machine is " +
                     machine_name(kThisMachine) + "; compile the model for this machine");
}

/// Puts a sealed copy of the image over its mapping; `memory` receives the copy.
Status MappedArtifact::seal(int& memory) {
  // Not checked yet: a wrong size gives a wrong hash, or is refused with the other extents.
  ArtifactHeader header;
  std::memcpy(&header, base_ + formats::kHeaderOffset, sizeof(header));
  uint64_t image = header.sections[static_cast<uint32_t>(ArtifactSection::kWeights)].offset;
  if (image > bytes_ || image < formats::kArtifactPage || image % formats::kArtifactPage != 0)
    image = bytes_;
  memory = memfd_create("cortiq-artifact", MFD_CLOEXEC | MFD_ALLOW_SEALING | kExecutableMemory);
  if (memory < 0 && errno == EINVAL) // a kernel that knows no other memory than executable one
    memory = memfd_create("cortiq-artifact", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory < 0)
    return system_error("cannot make memory for a sealed copy of it", errno);
  for (uint64_t done = 0; done < image;) {
    const ssize_t written = write(memory, base_ + done, image - done);
    if (written <= 0)
      return system_error("cannot fill the sealed copy of it", written < 0 ? errno : ENOSPC);
    done += static_cast<uint64_t>(written);
  }
  if (fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return system_error("cannot seal the copy of it", errno);
  if (mmap(base_, image, PROT_READ, MAP_PRIVATE | MAP_FIXED, memory, 0) == MAP_FAILED)
    return system_error("cannot map the sealed copy of it", errno);
  return {};
}

Status MappedArtifact::map_code(int fd) {
  const formats::ArtifactExtent code = header_.sections[static_cast<uint32_t>(ArtifactSection::kCode)];
  if (code.bytes == 0)
    return invalid("it has no code");
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  code_begin_ = code.offset / page * page;
  code_bytes_ = code.offset + code.bytes - code_begin_;
  void* address = mmap(nullptr, code_bytes_, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, static_cast<off_t>(code_begin_));
  if (address == MAP_FAILED)
    return system_error("cannot map its code for execution (is the file system mounted noexec?)", errno);
  code_ = static_cast<uint8_t*>(address);
  // The hash was taken through the other mapping of the same file.
  if (std::memcmp(code_, base_ + code_begin_, code_bytes_) != 0)
    return invalid("it changed while it was being read");
  return {};
}

std::span<const uint8_t> MappedArtifact::section(ArtifactSection section) const {
  const formats::ArtifactExtent extent = header_.sections[static_cast<uint32_t>(section)];
  return {base_ + extent.offset, extent.bytes};
}

formats::Hash256 MappedArtifact::root() const {
  formats::Hash256 out;
  std::memcpy(out.data(), header_.header_hash, out.size());
  return out;
}

const uint8_t* MappedArtifact::code_at(uint64_t file_offset) const {
  return code_ + (file_offset - code_begin_);
}

void MappedArtifact::unmap() {
  formats::unwatch_mapping(base_);
  formats::unwatch_mapping(code_);
  if (base_)
    munmap(base_, bytes_);
  if (code_)
    munmap(code_, code_bytes_);
}

MappedArtifact::MappedArtifact(MappedArtifact&& other) noexcept
    : header_(other.header_), base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_),
      code_(std::exchange(other.code_, nullptr)), code_bytes_(other.code_bytes_), code_begin_(other.code_begin_) {}

MappedArtifact& MappedArtifact::operator=(MappedArtifact&& other) noexcept {
  std::swap(header_, other.header_);
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(code_, other.code_);
  std::swap(code_bytes_, other.code_bytes_);
  std::swap(code_begin_, other.code_begin_);
  return *this;
}

MappedArtifact::~MappedArtifact() {
  unmap();
}

} // namespace cortiq::runtime
