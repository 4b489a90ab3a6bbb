// Shards in a folder that somebody else changes.

#include <filesystem>
#include <gmock/gmock.h>

#include "formats/file_guard.h"
#include "test/unit/base/sibling_faults.h"
#include "test/unit/cmf/sample.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

class CmfShards : public ::testing::Test {
protected:
  std::string shard(uint32_t number, uint32_t count = 2) const {
    char tag[40];
    std::snprintf(tag, sizeof tag, "-%05u-of-%05u.cmf", number, count);
    return folder_ / ("m\xFF\n" + std::string(tag));
  }
  void write(uint32_t number, uint64_t count, const std::string& path, const std::string& tensor) const {
    Json header = minimal_header();
    header["shard"] = {{"no", number}, {"count", count}};
    CmfWriter writer(header);
    const std::vector<uint8_t> payload(65536, 0x3C);
    writer.add_tensor(tensor, 0, {256, 64}, payload);
    ASSERT_EQ(writer.write(path).message(), "");
  }
  static Status verdict(const std::string& path) { return CmfFile::open(path).status(); }

  test::ScratchFolder folder_;
};

TEST_F(CmfShards, MayBeLinksAndHaveAnyName) {
  write(1, 2, shard(1), "a");
  write(2, 2, folder_ / "elsewhere", "b");
  std::filesystem::create_symlink("elsewhere", shard(2));
  const StatusOr<CmfFile> file = CmfFile::open(shard(1));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->find("b")->file, 1u);
}

TEST_F(CmfShards, AreRefusedInWordsWhateverStandsThere) {
  write(1, 2, shard(1), "a");
  for (const test::SiblingFault& fault : test::sibling_faults()) {
    std::filesystem::remove(shard(2));
    ASSERT_EQ(fault.put(shard(2)), 0) << fault.what;
    const Status status = verdict(shard(1));
    EXPECT_THAT(status.message(), HasSubstr("shard 2 of 2")) << fault.what;
    EXPECT_THAT(status.message(), HasSubstr(fault.reason)) << fault.what;
    EXPECT_EQ(status.message().find("is missing") != std::string::npos, fault.what == std::string_view("nothing"))
        << status.message();
    EXPECT_TRUE(test::is_one_sentence(status.message())) << status.message();
    EXPECT_EQ(exit_code(status), 2);
  }
}

TEST_F(CmfShards, DoNotStandForEachOther) {
  write(1, 2, shard(1), "a");
  std::filesystem::create_symlink(shard(1), shard(2));
  EXPECT_THAT(verdict(shard(1)).message(), HasSubstr("does not state that it is shard 2 of 2"));
}

TEST_F(CmfShards, MayVanishOnceOpened) {
  write(1, 2, shard(1), "a");
  write(2, 2, shard(2), "b");
  const StatusOr<CmfFile> file = CmfFile::open(shard(1));
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::filesystem::remove(shard(1));
  std::filesystem::remove(shard(2));
  EXPECT_EQ(file->verify().message(), "");
}

TEST_F(CmfShards, AreNotCountedBeforeTheyAreThere) {
  constexpr uint32_t kAbsurd = 2000000000;
  write(1, kAbsurd, shard(1, kAbsurd), "a");
  EXPECT_THAT(verdict(shard(1, kAbsurd)).message(), HasSubstr("shard 2 of 2000000000 is missing"));
}

using CmfShardsDeathTest = CmfShards;

TEST_F(CmfShardsDeathTest, NameTheOneThatWasCut) {
  write(1, 2, shard(1), "a");
  write(2, 2, shard(2), "b");
  EXPECT_EXIT(
      {
        install_file_guard("a-tool");
        const StatusOr<CmfFile> file = CmfFile::open(shard(1));
        std::filesystem::resize_file(shard(2), 4096);
        std::exit(file.ok() && file->verify().ok() ? 4 : 3);
      },
      ::testing::ExitedWithCode(2), "^a-tool: '.*-00002-of-00002.cmf' became shorter[^\n]*\n$");
}

} // namespace
} // namespace cortiq::formats
