// Sizes of shards, and which tensor goes into which.

#include "tools/cortiq-convert/shards.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cortiq::convert {
namespace {

using ::testing::ElementsAre;

TEST(Shards, SizesHaveUnits) {
  EXPECT_EQ(*parse_shard_size("4G"), uint64_t{4} << 30);
  EXPECT_EQ(*parse_shard_size("1500M"), uint64_t{1500} << 20);
  EXPECT_EQ(*parse_shard_size("2000000"), 2000000u);
  for (const char* text : {"", "G", "0", "1K", "4 G", "-1", "1048575", "99999999999999999999", "18446744073709551615G"})
    EXPECT_FALSE(parse_shard_size(text).ok()) << text;
}

TEST(Shards, TensorsStayWholeAndInOrder) {
  const formats::Codec& f32 = formats::codec_info(formats::CodecId::kF32);
  SourceTensor small, large;
  small.shape = {1, 100};
  large.shape = {10, 100};
  std::vector<Target> targets;
  for (const SourceTensor* source : {&small, &small, &large, &small, &large})
    targets.push_back({source, &f32, nullptr, nullptr, true});
  const auto counts = [&](uint64_t size) {
    const StatusOr<std::vector<std::vector<Target>>> shards = divide(targets, size);
    std::vector<size_t> out;
    for (const std::vector<Target>& shard : *shards)
      out.push_back(shard.size());
    return out;
  };
  EXPECT_THAT(counts(0), ElementsAre(5));
  EXPECT_THAT(counts(800), ElementsAre(2, 1, 1, 1)); // the large ones exceed it alone
  EXPECT_THAT(counts(4800), ElementsAre(3, 2));      // 400 + 400 + 4000, 400 + 4000
  EXPECT_THAT(counts(1 << 20), ElementsAre(5));
}

TEST(Shards, AppearTogetherOrNotAtAll) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "shards_appear";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto listing = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  };
  const auto write = [&](ShardFiles& files) {
    for (size_t i = 0; i < 2; ++i) {
      std::ofstream(files.path(i)) << i;
      files.written(i);
    }
  };
  {
    StatusOr<ShardFiles> files = ShardFiles::create((folder / "m.cmf").string(), 2);
    ASSERT_TRUE(files.ok()) << files.status().message();
    write(*files);
  }
  EXPECT_TRUE(listing().empty()); // never published
  {
    StatusOr<ShardFiles> files = ShardFiles::create((folder / "m.cmf").string(), 2);
    ASSERT_TRUE(files.ok()) << files.status().message();
    write(*files);
    ASSERT_TRUE(files->publish().ok());
  }
  EXPECT_THAT(listing(), ElementsAre("m-00001-of-00002.cmf", "m-00002-of-00002.cmf"));
  EXPECT_FALSE(ShardFiles::create((folder / "m.bin").string(), 2).ok());
}

} // namespace
} // namespace cortiq::convert
