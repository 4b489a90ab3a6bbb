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
#include "formats/file_guard.h"
#include "formats/mapped_file.h"
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
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU}) {
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
  // Names of others: no digits of ours, no ending of ours, folders without our lock or with folders in them.
  test::write_bytes(folder / "out.part-notours", test::bytes_of("x"));
  test::write_bytes(folder / "out.part-123456", test::bytes_of("x"));
  std::filesystem::create_directories(folder / "out.part-abcdef/kept");
  std::filesystem::create_directories(folder / "out.part-abcdef.cortiq/kept");
  std::filesystem::create_directories(folder / "out.part-012345.cortiq/kept");
  std::filesystem::create_directories(folder / "out.part-543210.cortiq"); // killed before it got its lock
  test::write_bytes(folder / "out.part-012345.cortiq/.cortiq-part", {});
  StatusOr<AtomicFile> file = AtomicFile::create(folder / "out");
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(file->commit().ok());
  EXPECT_THAT(names_in(folder), ElementsAre("out", "out.part-012345.cortiq", "out.part-123456", "out.part-abcdef",
                                            "out.part-abcdef.cortiq", "out.part-notours"));
  for (const char* kept : {"out.part-abcdef/kept", "out.part-abcdef.cortiq/kept", "out.part-012345.cortiq/kept"})
    EXPECT_TRUE(std::filesystem::exists(folder / kept)) << kept;
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

TEST(PartFiles, ACutInputLeavesNoPart) {
  const test::ScratchFolder folder;
  test::write_bytes(folder / "in", std::vector<uint8_t>(1 << 16, 1));
  const int status = run_child([&] {
    close(STDERR_FILENO); // the sentence is another test's
    install_file_guard("part_files_test");
    prepare_to_write();
    const StatusOr<MappedFile> input = MappedFile::open(folder / "in");
    const StatusOr<AtomicFile> file = AtomicFile::create(folder / "out");
    std::filesystem::resize_file(folder / "in", 0);
    const volatile uint8_t* bytes = input->bytes().data();
    _exit(bytes[1 << 15]);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_THAT(names_in(folder), ElementsAre("in"));
}

TEST(PartFiles, ProgramsThatWriteProtectWhatTheyRead) {
  const test::ScratchFolder folder;
  test::write_bytes(folder / "in", test::bytes_of("abc"));
  const int status = run_child([&] {
    prepare_to_write();
    if (!MappedFile::open(folder / "in").ok())
      _exit(3);
    const StatusOr<AtomicFile> file = AtomicFile::create(folder / "in");
    _exit(file.ok() ? 1 : exit_code(file.status()));
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_THAT(names_in(folder), ElementsAre("in"));
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
