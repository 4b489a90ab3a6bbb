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

#include "formats/artifact/artifact_hash.h"
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
        path_, std::span(content_).first(kReadAlignment), hashes_,
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
  WeightHashes hashes_;
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

TEST_P(Readers, HoldAFileOfANewTimeAgainstItsHashes) {
  constexpr uint64_t kFirst = 5 * kReadAlignment; // of what has hashes
  hashes_ = {kFirst, kFileBytes - kFirst, formats::leaf_hashes(std::span(content_).subspan(kFirst), 1)};
  auto reader = open();
  if (!reader.ok())
    GTEST_SKIP() << reader.status().message();
  auto write_at = [&](uint64_t offset, const void* bytes, size_t count) {
    usleep(20000); // times of files are coarse
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
  };
  auto served = [&](const UnitRead& r) {
    done_.clear();
    std::fill_n(r.to, r.bytes, uint8_t{0});
    (*reader)->start(r);
    return wait_for(r.unit).ok() &&
           std::equal(r.to, r.to + r.needed, content_.begin() + static_cast<ptrdiff_t>(r.offset));
  };
  const UnitRead first = read(0, kFirst, 5000), inside = read(1, 2 << 20, 70000),
                 last = read(2, kFileBytes / kReadAlignment * kReadAlignment, kFileBytes % kReadAlignment);
  write_at(2 << 20, content_.data() + (2 << 20), 9); // the same bytes: only the time changes
  for (int again = 0; again < 2; ++again)
    for (const UnitRead& r : {first, inside, last})
      EXPECT_TRUE(served(r)) << r.offset;
  EXPECT_FALSE(served(read(3, 0, 5000))) << "it has no hashes there";
  write_at(1 << 20, "changed", 7); // elsewhere in the leaf
  EXPECT_FALSE(served(inside));
  write_at(1 << 20, content_.data() + (1 << 20), 7);
  EXPECT_TRUE(served(inside));
  ASSERT_EQ(truncate(path_.c_str(), kFileBytes - 1), 0);
  EXPECT_FALSE(served(inside));
}

TEST_P(Readers, HoldWhatIsSignedAgainstItsHashesFromTheBeginning) {
  constexpr uint64_t kFirst = 5 * kReadAlignment;
  hashes_ = {kFirst, kFileBytes - kFirst, formats::leaf_hashes(std::span(content_).subspan(kFirst), 1), true};
  {
    // Between the check of what was mapped and the opening of what is read: no time tells it.
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(2 << 20);
    file.write("changed", 7);
  }
  auto reader = open();
  if (!reader.ok())
    GTEST_SKIP() << reader.status().message();
  (*reader)->start(read(0, 2 << 20, 5000));
  EXPECT_FALSE(wait_for(0).ok());
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
