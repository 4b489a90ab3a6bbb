#include "tools/cortiq-run/model_cache.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <vector>

#include "formats/artifact/artifact_hash.h"
#include "formats/input_files.h"
#include "formats/quote.h"
#include "runtime/cli/compiler_process.h"
#include "runtime/cpu/features.h"
#include "runtime/loader/load.h"

namespace cortiq::tools {
namespace {

constexpr uint64_t kEndSample = 1 << 20; // bytes hashed at both ends of the model
constexpr uint64_t kSample = 4096;       // and at places between them
constexpr uint64_t kSamples = 64;

/// What the key is taken over, as text and bytes one after the other.
class KeyBytes {
public:
  void add(const std::string& text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    bytes_.push_back(0);
  }
  void add(uint64_t number) { add(std::to_string(number)); }
  void add(const struct stat& info) {
    for (const uint64_t number :
         {uint64_t(info.st_dev), uint64_t(info.st_ino), uint64_t(info.st_size), uint64_t(info.st_mtim.tv_sec),
          uint64_t(info.st_mtim.tv_nsec), uint64_t(info.st_ctim.tv_sec), uint64_t(info.st_ctim.tv_nsec)})
      add(number);
  }
  /// The bytes of an open file that change when its content does, most likely.
  void add_sample(int fd, uint64_t size) {
    add_range(fd, 0, std::min(size, kEndSample));
    add_range(fd, size - std::min(size, kEndSample), std::min(size, kEndSample));
    for (uint64_t i = 1; i < kSamples; ++i)
      add_range(fd, size / kSamples * i, std::min(size, kSample));
  }
  std::string key() const {
    std::string out;
    for (const uint8_t byte : formats::hash256(bytes_)) {
      char digits[3];
      std::snprintf(digits, sizeof(digits), "%02x", byte);
      out += digits;
    }
    return out;
  }

private:
  void add_range(int fd, uint64_t offset, uint64_t length) {
    const size_t at = bytes_.size();
    bytes_.resize(at + length);
    const ssize_t got = pread(fd, bytes_.data() + at, length, static_cast<off_t>(offset));
    bytes_.resize(at + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }

  std::vector<uint8_t> bytes_;
};

StatusOr<std::string> cache_key(const runtime::cli::RunOptions& options, const std::string& compiler) {
  const int fd = open(options.file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat model{}, program{};
  if (fd < 0 || fstat(fd, &model) != 0) {
    const int error = errno;
    if (fd >= 0)
      close(fd);
    return io_error("cannot read " + formats::quote(options.file) + ": " + std::strerror(error));
  }
  KeyBytes bytes;
  bytes.add(model);
  bytes.add_sample(fd, static_cast<uint64_t>(model.st_size));
  close(fd);
  // Other parts, and signatures: one that came, changed or went is looked at anew.
  for (const std::string& file : formats::model_files(options.file)) {
    struct stat beside{};
    if (stat(file.c_str(), &beside) == 0)
      bytes.add(beside);
  }
  bytes.add(options.require_key);
  // The compiler's own file stands for its version.
  if (stat(compiler.c_str(), &program) == 0)
    bytes.add(program);
  bytes.add(options.numerics);
  bytes.add(options.prompt_numerics);
  bytes.add(options.q4tp_ladder);
  bytes.add(options.gpu_experts);
  bytes.add(options.target);
  bytes.add(options.max_context);
  for (const std::string& feature : runtime::usable_features(runtime::read_cpu_state()))
    bytes.add(feature);
  return bytes.key();
}

/// The folder to use, created when missing; empty when there is none.
std::string cache_folder(const std::string& asked) {
  std::string folder = asked;
  if (const char* base = std::getenv("XDG_CACHE_HOME"); folder.empty() && base && *base)
    folder = std::string(base) + "/cortiq";
  if (const char* home = std::getenv("HOME"); folder.empty() && home && *home)
    folder = std::string(home) + "/.cache/cortiq";
  for (size_t slash = folder.find('/', 1); slash != std::string::npos; slash = folder.find('/', slash + 1))
    mkdir(folder.substr(0, slash).c_str(), 0777);
  if (!folder.empty())
    mkdir(folder.c_str(), 0777);
  return !folder.empty() && access(folder.c_str(), W_OK | X_OK) == 0 ? folder : "";
}

constexpr char kKeyOption[] = "--cache-key=";

std::vector<std::string> compile_arguments(const runtime::cli::RunOptions& options, const std::string& out) {
  std::vector<std::string> arguments = {options.file, "-o", out};
  if (!options.require_key.empty())
    arguments.push_back("--require-key=" + options.require_key);
  if (!options.numerics.empty())
    arguments.push_back("--numerics=" + options.numerics);
  if (!options.prompt_numerics.empty())
    arguments.push_back("--prompt-numerics=" + options.prompt_numerics);
  if (!options.q4tp_ladder.empty())
    arguments.push_back("--q4tp-ladder=" + options.q4tp_ladder);
  if (!options.gpu_experts.empty())
    arguments.push_back("--gpu-experts=" + options.gpu_experts);
  if (!options.target.empty())
    arguments.push_back("--target=" + options.target);
  if (options.max_context != 0)
    arguments.push_back("--max-context=" + std::to_string(options.max_context));
  return arguments;
}

StatusOr<CachedArtifact> compile_to_temporary(const runtime::cli::RunOptions& options, const std::string& compiler) {
  const char* base = std::getenv("TMPDIR");
  std::string path = std::string(base && *base ? base : "/tmp") + "/cortiq-XXXXXX.cqa";
  const int fd = mkstemps(path.data(), 4);
  if (fd < 0)
    return io_error("there is neither a cache nor a temporary folder to compile into (" + formats::quote(path) + ": " +
                    std::strerror(errno) + "); name one with --cache");
  close(fd);
  CachedArtifact out(path, true);
  CORTIQ_RETURN_IF_ERROR(runtime::cli::run_compiler(compiler, compile_arguments(options, path)));
  return out;
}

/// Whether an artifact of the model `file` may not fit `folder`.
bool short_of_space(const std::string& folder, const std::string& file) {
  struct statvfs space{};
  struct stat model{};
  if (statvfs(folder.c_str(), &space) != 0 || stat(file.c_str(), &model) != 0)
    return true;
  return uint64_t{space.f_bavail} * space.f_frsize < 2 * static_cast<uint64_t>(model.st_size);
}

/// Whether `path` is sound and was compiled for this entry: an artifact of another model under its name is none.
bool usable(const std::string& path, const std::string& key) {
  if (access(path.c_str(), R_OK) != 0)
    return false;
  const auto artifact = runtime::load_artifact(path, {});
  if (!artifact.ok())
    return false;
  const flatbuffers::String* how = (*artifact)->manifest->options();
  return how != nullptr && how->string_view().find(kKeyOption + key) != std::string_view::npos;
}

} // namespace

CachedArtifact::CachedArtifact(CachedArtifact&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, false)) {}

CachedArtifact::~CachedArtifact() {
  if (temporary_)
    unlink(path_.c_str());
}

StatusOr<CachedArtifact> compile_into_cache(const runtime::cli::RunOptions& options) {
  CORTIQ_ASSIGN_OR_RETURN(const std::string compiler, runtime::cli::find_compiler());
  CORTIQ_ASSIGN_OR_RETURN(const std::string key, cache_key(options, compiler));
  const std::string folder = cache_folder(options.cache);
  if (!folder.empty()) {
    const std::string path = folder + "/" + key + ".cqa";
    if (usable(path, key))
      return CachedArtifact(path, false);
    if (isatty(STDERR_FILENO))
      std::fprintf(stderr, "cortiq-run: compiling %s\n", formats::quote(options.file).c_str());
    std::vector<std::string> arguments = compile_arguments(options, path);
    arguments.push_back(kKeyOption + key);
    const Status status = runtime::cli::run_compiler(compiler, arguments);
    if (status.ok())
      return CachedArtifact(path, false);
    if (!short_of_space(folder, options.file))
      return status; // the model's fault: it would be refused again
    std::fprintf(stderr, "cortiq-run: note: the cache %s is short of space, trying a temporary file\n",
                 formats::quote(folder).c_str());
  } else {
    std::fprintf(stderr, "cortiq-run: note: there is no usable cache folder; the compiled model is not kept\n");
  }
  return compile_to_temporary(options, compiler);
}

} // namespace cortiq::tools
