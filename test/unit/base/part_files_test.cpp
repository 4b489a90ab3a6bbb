// Temporary names: what ends, however it ends, leaves none behind.

#include "formats/part_files.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/atomic_file.h"
#include "test/unit/base/test_files.h"

namespace cortiq::formats {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names_in(const test::ScratchFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Runs `body` in a child process, which does not come back from it; its wait status.
template <class Body>
int run_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(PartFiles, SignalsRemoveWhatIsUnfinished) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const test::ScratchFolder folder;
    const int status = run_child([&] {
      prepare_to_write();
      const StatusOr<AtomicFile> file = AtomicFile::create(folder / "out");
      const StatusOr<Part> shards = create_part(folder / "shards", /*folder=*/true);
      test::write_bytes(shards->path + "/1", test::bytes_of("x"));
      watch_part(shards->path + "/1");
      raise(number);
    });
    ASSERT_TRUE(WIFSIGNALED(status)) << number;
    EXPECT_EQ(WTERMSIG(status), number);
    EXPECT_TRUE(names_in(folder).empty()) << number;
  }
}

TEST(PartFiles, FinishedFilesSurviveSignals) {
  const test::ScratchFolder folder;
  const int status = run_child([&] {
    prepare_to_write();
    StatusOr<AtomicFile> file = AtomicFile::create(folder / "out");
    if (file->write("abc").ok() && file->commit().ok())
      raise(SIGTERM);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_THAT(names_in(folder), ElementsAre("out"));
}

TEST(PartFiles, TheNextRunRemovesWhatAKilledOneLeft) {
  const test::ScratchFolder folder;
  const int status = run_child([&] {
    const StatusOr<AtomicFile> file = AtomicFile::create(folder / "out");
    const StatusOr<Part> shards = create_part(folder / "out", /*folder=*/true);
    test::write_bytes(shards->path + "/1", test::bytes_of("x"));
    raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(names_in(folder).size(), 2u);
  test::write_bytes(folder / "out.part-notours", test::bytes_of("x"));
  StatusOr<AtomicFile> file = AtomicFile::create(folder / "out");
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(file->commit().ok());
  EXPECT_THAT(names_in(folder), ElementsAre("out", "out.part-notours"));
}

TEST(PartFiles, PartsOfOthersThatStillWriteStay) {
  const test::ScratchFolder folder;
  StatusOr<AtomicFile> first = AtomicFile::create(folder / "out");
  StatusOr<AtomicFile> second = AtomicFile::create(folder / "out");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(names_in(folder).size(), 2u);
  EXPECT_TRUE(first->write("first").ok() && first->commit().ok());
  EXPECT_TRUE(second->write("second").ok() && second->commit().ok());
  EXPECT_THAT(names_in(folder), ElementsAre("out"));
}

TEST(PartFiles, FilesThatGrowTooLargeAreAnError) {
  const test::ScratchFolder folder;
  const int status = run_child([&] {
    prepare_to_write();
    const rlimit limit{1024, 1024};
    setrlimit(RLIMIT_FSIZE, &limit);
    StatusOr<AtomicFile> file = AtomicFile::create(folder / "out");
    const Status written = file->write(std::string(4096, 'x'));
    _exit(!written.ok() && exit_code(written) == 2 ? 0 : 1);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
} // namespace cortiq::formats
