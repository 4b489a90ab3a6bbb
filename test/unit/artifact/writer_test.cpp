#include "compiler/artifact/writer.h"

#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/artifact/artifact_file.h"
#include "runtime/loader/load.h"
#include "test/unit/runtime/temporary_folder.h"
#include "test/unit/runtime/tiny_model.h"

namespace cortiq::compiler {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// What a command prints, both streams; empty optional when the program is not installed.
std::optional<std::string> output_of(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string out;
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof(buffer), pipe)) != 0;)
    out.append(buffer, got);
  const int status = pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    return std::nullopt;
  return out;
}

/// Weights that take several hash leaves, each byte told by its place.
ArtifactContents large_contents() {
  ArtifactContents out;
  out.kernels = {{"first_kernel", {0x55, 0x48, 0x89, 0xe5, 0xb8, 42, 0, 0, 0, 0x5d, 0xc3}}, // returns 42
                 {"second_kernel", {0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0x5d, 0xc3}}};
  out.manifest.architecture = "test";
  out.manifest.compiler_version = "0";
  out.manifest.target = "x86-64";
  for (const uint64_t bytes : {100u, 9u << 20, 1u, 5u << 20, 4096u}) {
    auto weight = std::make_unique<artifact::WeightT>();
    weight->name = "w" + std::to_string(out.manifest.weights.size());
    weight->bytes = bytes;
    out.manifest.weights.push_back(std::move(weight));
  }
  artifact::ProgramT program;
  out.program = serializeProgram(program);
  out.tokenizer = {1, 2, 3};
  out.provenance = "test";
  out.weights = [](size_t index, std::span<uint8_t> bytes) {
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<uint8_t>(i * 31 + index);
    return Status();
  };
  return out;
}

size_t entries(const std::string& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(Writer, PlacesKernelsAlignedAndInOrder) {
  const ArtifactContents contents = large_contents();
  const auto placement = placeKernels(contents.kernels);
  ASSERT_TRUE(placement.ok());
  test::TemporaryFolder folder;
  ASSERT_TRUE(writeArtifact(folder.file("a.cqa"), large_contents()).ok());
  const std::string file = read_file(folder.file("a.cqa"));
  for (size_t i = 0; i < contents.kernels.size(); ++i) {
    const auto [offset, bytes] = placement->kernels[i];
    EXPECT_EQ(offset % 64, 0u);
    EXPECT_EQ(std::memcmp(file.data() + offset, contents.kernels[i].code.data(), bytes), 0);
  }
}

TEST(Writer, SameContentsGiveTheSameBytesOnAnyNumberOfThreads) {
  test::TemporaryFolder folder;
  ASSERT_TRUE(writeArtifact(folder.file("a"), large_contents(), {.threads = 1}).ok());
  ASSERT_TRUE(writeArtifact(folder.file("b"), large_contents(), {.threads = 4}).ok());
  EXPECT_EQ(read_file(folder.file("a")), read_file(folder.file("b")));
  EXPECT_EQ(entries(folder.path()), 2u);
}

TEST(Writer, ToolsSeeTheKernelsByName) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("a.cqa");
  ASSERT_TRUE(writeArtifact(path, large_contents()).ok());
  const auto readelf = output_of("readelf -aW " + path);
  if (!readelf)
    GTEST_SKIP() << "readelf is not installed";
  EXPECT_THAT(*readelf, AllOf(HasSubstr("first_kernel"), HasSubstr(".cortiq.weights"), HasSubstr("GNU_STACK"),
                              Not(HasSubstr("arning")), Not(HasSubstr("rror"))));
  const auto objdump = output_of("objdump -d " + path);
  if (objdump)
    EXPECT_THAT(*objdump, AllOf(HasSubstr("<second_kernel>:"), HasSubstr("push   %rbp")));
  const auto frames = output_of("readelf --debug-dump=frames-interp " + path);
  EXPECT_THAT(*frames, AllOf(HasSubstr("rbp+16"), HasSubstr("rsp+8"), Not(HasSubstr("arning"))));
  const auto gdb = output_of("gdb -nx -batch -ex 'info functions' " + path);
  if (gdb)
    EXPECT_THAT(*gdb, AllOf(HasSubstr("first_kernel"), HasSubstr("second_kernel")));
}

TEST(Writer, ConstantsAreDataForTools) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("a.cqa");
  ArtifactContents contents = large_contents();
  contents.kernels[0].code.resize(64, 0xcc);
  contents.kernels[0].constantsOffset = 64;
  contents.kernels[0].code.resize(96, 0x90); // decoded, these would be 32 times nop
  ASSERT_TRUE(writeArtifact(path, std::move(contents)).ok());
  const auto readelf = output_of("readelf -aW " + path);
  if (!readelf)
    GTEST_SKIP() << "readelf is not installed";
  EXPECT_THAT(*readelf,
              AllOf(ContainsRegex("32 OBJECT +LOCAL .*constants"), ContainsRegex("96 FUNC +GLOBAL .*first_kernel"),
                    Not(HasSubstr("arning")), Not(HasSubstr("rror"))));
  const auto objdump = output_of("objdump -d --no-show-raw-insn --disassemble=first_kernel " + path);
  if (objdump)
    EXPECT_THAT(*objdump, AllOf(HasSubstr("<constants>:"), Not(HasSubstr("nop"))));

  ArtifactContents wrong = large_contents();
  wrong.kernels[0].constantsOffset = wrong.kernels[0].code.size();
  EXPECT_THAT(writeArtifact(path, std::move(wrong)).message(), HasSubstr("begin behind its end"));
}

TEST(Writer, IsASharedObjectForTheDynamicLinker) {
  test::TemporaryFolder folder;
  ASSERT_TRUE(writeArtifact(folder.file("a.cqa"), large_contents()).ok());
  void* handle = dlopen(folder.file("a.cqa").c_str(), RTLD_NOW);
  ASSERT_NE(handle, nullptr) << dlerror();
  auto* first = reinterpret_cast<int (*)()>(dlsym(handle, "first_kernel"));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first(), 42);
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(first), &info), 0);
  EXPECT_STREQ(info.dli_sname, "first_kernel");
  dlclose(handle);
}

TEST(Writer, FailuresLeaveNothing) {
  test::TemporaryFolder folder;
  ArtifactContents failing = large_contents();
  failing.weights = [](size_t index, std::span<uint8_t>) { return index == 3 ? invalid("no such bytes") : Status(); };
  const Status filled = writeArtifact(folder.file("a"), std::move(failing), {.threads = 2});
  EXPECT_THAT(filled.message(), AllOf(HasSubstr("w3"), HasSubstr("no such bytes")));
  WriteOptions refusing;
  refusing.verify = [](const std::string& path) {
    EXPECT_EQ(access(path.c_str(), R_OK), 0);
    return invalid("not good");
  };
  EXPECT_THAT(writeArtifact(folder.file("a"), large_contents(), refusing).message(), HasSubstr("not good"));
  EXPECT_FALSE(writeArtifact(folder.file("none/a"), large_contents()).ok());
  ArtifactContents twice = large_contents();
  twice.kernels.push_back(twice.kernels[0]);
  EXPECT_THAT(writeArtifact(folder.file("a"), std::move(twice)).message(), HasSubstr("first_kernel"));
  EXPECT_EQ(entries(folder.path()), 0u);
}

TEST(Writer, KernelsOfEqualBytesAreStoredOnce) {
  ArtifactContents contents = large_contents();
  contents.kernels.push_back({"same_as_first", contents.kernels[0].code});
  const auto placement = placeKernels(contents.kernels);
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->kernels[2].offset, placement->kernels[0].offset);
  test::TemporaryFolder folder;
  ASSERT_TRUE(writeArtifact(folder.file("a.cqa"), std::move(contents)).ok());
  const auto readelf = output_of("readelf -aW " + folder.file("a.cqa"));
  if (!readelf)
    GTEST_SKIP() << "readelf is not installed";
  EXPECT_THAT(*readelf,
              AllOf(ContainsRegex("FUNC    WEAK   DEFAULT    [0-9]+ same_as_first"),
                    ContainsRegex("FUNC    GLOBAL DEFAULT    [0-9]+ first_kernel"), Not(HasSubstr("arning"))));
  void* library = dlopen(folder.file("a.cqa").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_EQ(dlsym(library, "same_as_first"), dlsym(library, "first_kernel"));
  dlclose(library);
}

TEST(Writer, ReplacesAnOldFileOnlyWhenDone) {
  test::TemporaryFolder folder;
  std::ofstream(folder.file("a")) << "old";
  WriteOptions options;
  options.verify = [&](const std::string&) {
    EXPECT_EQ(read_file(folder.file("a")), "old");
    return Status();
  };
  ASSERT_TRUE(writeArtifact(folder.file("a"), large_contents(), options).ok());
  EXPECT_THAT(read_file(folder.file("a")), ::testing::StartsWith("\x7f"
                                                                 "ELF"));
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(Writer, ProgramsMayOnlyCallKernelsThatExist) {
  artifact::ProgramT program;
  program.kernels.push_back(std::make_unique<artifact::KernelT>());
  program.kernels[0]->name = "third_kernel";
  const ArtifactContents contents = large_contents();
  EXPECT_THAT(setKernelOffsets(program, contents.kernels, *placeKernels(contents.kernels)).message(),
              HasSubstr("third_kernel"));
}

TEST(Writer, LoaderAcceptsWhatItWroteAndChecksTheWeights) {
  test::TemporaryFolder folder;
  WriteOptions options;
  options.verify = [](const std::string& path) {
    return runtime::load_artifact(path, {.verify_weights = true}).status();
  };
  test::TinyModel tiny;
  ASSERT_TRUE(tiny.write(folder.file("a")).ok());
  ASSERT_TRUE(options.verify(folder.file("a")).ok());
  std::string bytes = read_file(folder.file("a"));
  bytes[bytes.size() - 100] ^= 1; // inside the last weight
  std::ofstream(folder.file("b"), std::ios::binary) << bytes;
  EXPECT_TRUE(runtime::load_artifact(folder.file("b"), {}).ok());
  EXPECT_THAT(options.verify(folder.file("b")).message(), HasSubstr("weights are damaged"));
}

} // namespace
} // namespace cortiq::compiler
