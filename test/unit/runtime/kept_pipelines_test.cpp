// The file of pipelines: what was written comes back, what was damaged is as good as none.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "runtime/vulkan/kept_pipelines.h"
#include "test/unit/runtime/temporary_folder.h"

namespace cortiq::runtime::vulkan {
namespace {

using ::testing::IsEmpty;

std::vector<uint8_t> some_bytes() {
  std::vector<uint8_t> out(5000);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<uint8_t>(i * 37);
  return out;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

uint64_t files_in(const std::string& folder) {
  const auto list = std::filesystem::directory_iterator(folder);
  return static_cast<uint64_t>(std::distance(begin(list), end(list)));
}

TEST(KeptPipelines, ComeBackAndReplaceWhatWasThere) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("below/pipelines.bin");
  EXPECT_THAT(read_kept_pipelines(path), IsEmpty());
  ASSERT_TRUE(write_kept_pipelines(path, std::vector<uint8_t>(10, 1)).ok());
  ASSERT_TRUE(write_kept_pipelines(path, some_bytes()).ok());
  EXPECT_EQ(read_kept_pipelines(path), some_bytes());
  EXPECT_EQ(files_in(folder.file("below")), 1u);
}

TEST(KeptPipelines, OfAKilledProgramLeaveNoOtherFile) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("pipelines.bin");
  put(path + ".part-abcdef.cortiq", "half");
  ASSERT_TRUE(write_kept_pipelines(path, some_bytes()).ok());
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(KeptPipelines, DamagedAreNone) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("pipelines.bin");
  ASSERT_TRUE(write_kept_pipelines(path, some_bytes()).ok());
  const std::string whole = text_of(path);
  for (const size_t length : {size_t{0}, size_t{7}, size_t{24}, whole.size() / 2, whole.size() - 1}) {
    put(path, whole.substr(0, length));
    EXPECT_THAT(read_kept_pipelines(path), IsEmpty()) << length;
  }
  put(path, whole + "x");
  EXPECT_THAT(read_kept_pipelines(path), IsEmpty());
  for (const size_t at : {size_t{0}, size_t{8}, size_t{15}, size_t{16}, size_t{24}, whole.size() - 1}) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    put(path, flipped);
    EXPECT_THAT(read_kept_pipelines(path), IsEmpty()) << at;
  }
  put(path, whole);
  EXPECT_EQ(read_kept_pipelines(path), some_bytes());
}

TEST(KeptPipelines, AreNotReadFromOrWrittenOverWhatIsNoFile) {
  const test::TemporaryFolder folder;
  const std::string pipe = folder.file("pipe"), directory = folder.file("directory");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0); // reading it would wait for ever
  std::filesystem::create_directory(directory);
  for (const std::string& path : {pipe, directory}) {
    EXPECT_THAT(read_kept_pipelines(path), IsEmpty());
    EXPECT_FALSE(write_kept_pipelines(path, some_bytes()).ok());
  }
  EXPECT_FALSE(write_kept_pipelines("/proc/no/such/folder/pipelines.bin", some_bytes()).ok());
}

} // namespace
} // namespace cortiq::runtime::vulkan
