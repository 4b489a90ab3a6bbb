#include "formats/file_guard.h"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "formats/mapped_file.h"
#include "test/unit/base/test_files.h"

namespace cortiq::formats {
namespace {

constexpr size_t kBytes = 1 << 20;

class FileGuardDeathTest : public ::testing::Test {
protected:
  FileGuardDeathTest() { test::write_bytes(path_, std::vector<uint8_t>(kBytes, 7)); }

  /// Maps the file, cuts it and reads where nothing is left.
  static void cut_while_mapped(const std::string& path) {
    const StatusOr<MappedFile> file = MappedFile::open(path);
    if (!file.ok() || truncate(path.c_str(), 4096) != 0)
      std::exit(3);
    [[maybe_unused]] const volatile uint8_t byte = file->bytes()[kBytes - 1];
    std::exit(4);
  }

  /// Maps the file without a reader, calls `prepare` with the mapping, cuts the file and reads.
  template <class Prepare>
  static void cut_under(const std::string& path, Prepare prepare) {
    std::FILE* file = std::fopen(path.c_str(), "r+");
    const void* map = file ? mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fileno(file), 0) : MAP_FAILED;
    if (map == MAP_FAILED)
      std::exit(3);
    prepare(map);
    if (ftruncate(fileno(file), 0) != 0)
      std::exit(3);
    [[maybe_unused]] const volatile uint8_t byte = *static_cast<const uint8_t*>(map);
    std::exit(4);
  }

  test::ScratchFolder folder_;
  std::string path_ = folder_ / "model \xff.gguf";
};

TEST_F(FileGuardDeathTest, EndsWithOneSentenceWhenAMappedFileIsCut) {
  EXPECT_EXIT(
      {
        install_file_guard("a-tool");
        cut_while_mapped(path_);
      },
      ::testing::ExitedWithCode(2),
      "^a-tool: '.*model .*gguf' became shorter or unreadable while it was in use[^\n]*\n$");
}

TEST_F(FileGuardDeathTest, LetsOneThreadSpeakWhenManyMeetTheHole) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "the thread sanitizer answers a fault in a second thread itself, before the guard's process has ended";
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
  GTEST_SKIP()
      << "the thread sanitizer answers a fault in a second thread itself, before the guard's process has ended";
#endif
#endif
  EXPECT_EXIT(
      {
        install_file_guard("a-tool");
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i)
          threads.emplace_back([this] { cut_while_mapped(path_); });
        for (std::thread& thread : threads)
          thread.join();
      },
      ::testing::ExitedWithCode(2), "^a-tool: [^\n]*\n$");
}

TEST_F(FileGuardDeathTest, InstallsNothingByMapping) {
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, [](int) { _exit(9); });
        cut_while_mapped(path_);
      },
      ::testing::ExitedWithCode(9), "");
}

TEST_F(FileGuardDeathTest, HandsOnWhatNobodyRegistered) {
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, [](int) { _exit(9); });
        install_file_guard("a-tool");
        cut_under(path_, [](const void*) {});
      },
      ::testing::ExitedWithCode(9), "");
}

TEST_F(FileGuardDeathTest, WatchesUntilToldOtherwise) {
  EXPECT_EXIT(
      {
        install_file_guard("a-tool");
        cut_under(path_, [](const void* map) { watch_mapping(map, kBytes, "some file"); });
      },
      ::testing::ExitedWithCode(2), "^a-tool: 'some file' became shorter");
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, [](int) { _exit(9); });
        install_file_guard("a-tool");
        cut_under(path_, [](const void* map) {
          watch_mapping(map, kBytes, "some file");
          unwatch_mapping(map);
        });
      },
      ::testing::ExitedWithCode(9), "");
}

} // namespace
} // namespace cortiq::formats
