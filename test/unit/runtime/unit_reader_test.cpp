// The readers of experts on real files.

#include <condition_variable>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <random>
#include <unistd.h>
#include <vector>

#include "runtime/experts/unit_reader.h"
#include "runtime/session/reserved_memory.h"
#include "test/unit/runtime/temporary_folder.h"

namespace cortiq::runtime {
namespace {

using testing::HasSubstr;

constexpr uint64_t kFileBytes = 3 * 1024 * 1024 + 777; ///< ends within a page

class Readers : public testing::TestWithParam<ReaderKind> {
protected:
  Readers() : path_(folder_.file("experts.bin")), content_(kFileBytes), memory_(64 << 20) {
    std::mt19937 random(3);
    for (uint8_t& byte : content_)
      byte = static_cast<uint8_t>(random());
    std::ofstream(path_, std::ios::binary).write(reinterpret_cast<const char*>(content_.data()), kFileBytes);
  }

  StatusOr<std::unique_ptr<UnitReader>> open() {
    return open_unit_reader(
        path_, std::span(content_).first(kReadAlignment),
        [this](uint32_t unit, const Status& status) {
          std::lock_guard lock(mutex_);
          done_[unit] = status;
          changed_.notify_all();
        },
        GetParam());
  }

  Status wait_for(uint32_t unit) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_.contains(unit); });
    return done_[unit];
  }

  UnitRead read(uint32_t unit, uint64_t offset, uint64_t needed) {
    const uint64_t bytes = (needed + kReadAlignment - 1) / kReadAlignment * kReadAlignment;
    return {offset, bytes, needed, memory_.data() + unit * (uint64_t{1} << 20), unit};
  }

  test::TemporaryFolder folder_;
  std::string path_;
  std::vector<uint8_t> content_;
  ReservedMemory memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint32_t, Status> done_;
};

TEST_P(Readers, BringTheBytesOfTheFile) {
  auto reader = open();
  if (!reader.ok())
    GTEST_SKIP() << reader.status().message();
  std::vector<UnitRead> reads;
  for (uint32_t unit = 0; unit < UnitReader::kMostReads; ++unit) {
    const uint64_t offset = unit * 11 % 700 * kReadAlignment;
    reads.push_back(read(unit, offset, std::min<uint64_t>(100000 + unit * 999, kFileBytes - offset)));
  }
  for (const UnitRead& r : reads)
    (*reader)->start(r);
  for (const UnitRead& r : reads) {
    const Status status = wait_for(r.unit);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(std::equal(r.to, r.to + r.needed, content_.begin() + static_cast<ptrdiff_t>(r.offset))) << r.unit;
  }
  // The last page is shorter than the read.
  const uint64_t last = kFileBytes / kReadAlignment * kReadAlignment;
  done_.clear();
  (*reader)->start(read(0, last, kFileBytes - last));
  EXPECT_TRUE(wait_for(0).ok());
}

TEST_P(Readers, SayThatAFileWasCut) {
  auto reader = open();
  if (!reader.ok())
    GTEST_SKIP() << reader.status().message();
  ASSERT_EQ(truncate(path_.c_str(), 1 << 20), 0);
  (*reader)->start(read(0, 2 << 20, 5000));
  (*reader)->start(read(1, (1 << 20) - 4096, 50000));
  for (const uint32_t unit : {0u, 1u})
    EXPECT_THAT(wait_for(unit).message(), HasSubstr("experts.bin' was changed while it was in use"));
}

TEST_P(Readers, SayThatAFileWasChanged) {
  auto reader = open();
  if (!reader.ok())
    GTEST_SKIP() << reader.status().message();
  usleep(20000); // times of files are coarse
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(2 << 20);
    file.write("changed", 7);
  }
  (*reader)->start(read(0, 2 << 20, 5000));
  EXPECT_THAT(wait_for(0).message(), HasSubstr("was changed while it was in use"));
}

TEST_P(Readers, GoOnWithAFileWhoseNameWasGivenToAnother) {
  auto reader = open();
  if (!reader.ok())
    GTEST_SKIP() << reader.status().message();
  std::ofstream(folder_.file("other"), std::ios::binary) << "other";
  ASSERT_EQ(rename(folder_.file("other").c_str(), path_.c_str()), 0);
  const UnitRead r = read(0, 1 << 20, 5000);
  (*reader)->start(r);
  ASSERT_TRUE(wait_for(0).ok());
  EXPECT_TRUE(std::equal(r.to, r.to + r.needed, content_.begin() + (1 << 20)));
}

TEST_P(Readers, RefuseAnotherFileOfThatName) {
  ++content_[100];
  auto reader = open();
  ASSERT_FALSE(reader.ok());
  EXPECT_THAT(reader.status().message(), HasSubstr("was replaced while it was being loaded"));
}

TEST_P(Readers, EndWithReadsUnderWay) {
  auto reader = open();
  if (!reader.ok())
    GTEST_SKIP() << reader.status().message();
  for (uint32_t unit = 0; unit < 16; ++unit)
    (*reader)->start(read(unit, unit * kReadAlignment, 900000));
  *reader = nullptr;
  std::lock_guard lock(mutex_);
  EXPECT_EQ(done_.size(), 16u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Readers, testing::Values(ReaderKind::kUring, ReaderKind::kThreads),
                         [](const auto& kind) { return kind.param == ReaderKind::kUring ? "Uring" : "Threads"; });

} // namespace
} // namespace cortiq::runtime
