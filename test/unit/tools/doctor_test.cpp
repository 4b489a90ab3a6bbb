// What --doctor says of machines that are not this one.

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/cpu/features.h"
#include "test/unit/runtime/temporary_folder.h"
#include "tools/cortiq-run/doctor/advice.h"
#include "tools/cortiq-run/doctor/report.h"

namespace cortiq::tools {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A machine about which there is nothing to say.
Findings sound() {
  Findings f;
  f.cpu = "Some CPU";
  f.features = {"avx2"};
  f.targets = {{"x86-64-v3", ""}, {"avx512vnni", ""}, {"amx", "its code needs amx_int8"}};
  f.limits.affinity = f.limits.cores = f.online = 8;
  f.limits.host_memory = f.available = uint64_t{16} << 30;
  f.read_gbps = 40;
  f.gpus = {{"A GPU", "a driver", "discrete", uint64_t{8} << 30, ""}};
  f.compiler = "/usr/bin/cortiq-compile";
  FoundFile file;
  file.path = "m.cqa";
  file.kind = formats::FileKind::kArtifact;
  file.model.emplace();
  file.model->target = "avx512vnni";
  file.model->weight_bytes = uint64_t{4} << 30;
  file.for_gpu = true;
  f.file = file;
  return f;
}

TEST(Doctor, HasNothingToSayOfAMachineThatIsAsItShouldBe) {
  EXPECT_THAT(advise(sound()), IsEmpty());
  EXPECT_NEAR(decode_ceiling(sound()), 40e9 / (uint64_t{4} << 30), 1e-9);
}

TEST(Doctor, NamesTheNextStep) {
  struct Case {
    std::function<void(Findings&)> change;
    std::vector<const char*> words;
  };
  const Case cases[] = {
      {[](Findings& f) { f.file->model->target = "x86-64-v3"; }, {"can do avx512vnni", "--target vulkan,avx512vnni"}},
      {[](Findings& f) {
         f.file->model->target = "x86-64-v3";
         f.file->for_gpu = false;
       },
       {"can do avx512vnni", "--target avx512vnni"}},
      {[](Findings& f) { f.file->model->exact = true; }, {"--numerics fast"}},
      {[](Findings& f) { f.file->for_gpu = false; }, {"--target vulkan"}},
      {[](Findings& f) { f.available = uint64_t{1} << 30; }, {"4.0 GiB", "1.0 GiB", "--memory", "--quant"}},
      {[](Findings& f) { f.limits.memory_limit = uint64_t{2} << 30; }, {"2.0 GiB"}},
      {[](Findings& f) { f.withheld = {"avx512f"}; }, {"avx512f", "has not enabled", "newer kernel"}},
      {[](Findings& f) {
         f.targets[2].why_not = "AMX tiles, which the operating system does not let this process use";
       },
       {"target amx", "seccomp"}},
      {[](Findings& f) { f.limits.quota = 1.5; }, {"1.50 of 8 cores", "--cpus 8"}},
      {[](Findings& f) { f.online = 16; }, {"8 of 16 processors", "taskset"}},
      {[](Findings& f) { f.governor = "powersave"; }, {"powersave", "cpupower"}},
      {[](Findings& f) { f.large_pages = "never"; }, {"echo madvise >", "--pages large"}},
      {[](Findings& f) { f.large_pages = "madvise"; }, {"--pages large"}},
      {[](Findings& f) { f.no_gpus = "libvulkan.so.1 is missing"; }, {"libvulkan.so.1 is missing", "install"}},
      {[](Findings& f) { f.gpus[0].unusable = "no 8-bit storage"; }, {"A GPU", "no 8-bit storage", "driver"}},
      {[](Findings& f) { f.compiler.clear(); }, {"cortiq-compiler"}},
      {[](Findings& f) { f.targets.clear(); }, {"AVX2"}},
      {[](Findings& f) { f.file->status = invalid("its code is for another machine"); },
       {"compile the model of 'm.cqa' again", "--target avx512vnni"}},
      {[](Findings& f) { f.file->kind = formats::FileKind::kGguf; }, {"cortiq-compile 'm.cqa' -o OUT.cqa"}},
  };
  for (const Case& c : cases) {
    Findings f = sound();
    c.change(f);
    const std::vector<std::string> steps = advise(f);
    for (const char* word : c.words)
      EXPECT_THAT(steps, Contains(HasSubstr(word)));
    for (const std::string& step : steps) {
      EXPECT_THAT(report_text(f, false), HasSubstr(step));
      EXPECT_THAT(nlohmann::json::parse(report_json(f))["next_steps"], Contains(nlohmann::json(step)));
    }
  }
}

TEST(Doctor, SaysTheSameInBothForms) {
  Findings f = sound();
  f.withheld = {"amx_tile"};
  f.gpus.push_back({"Other", "old driver", "integrated", 0, "Vulkan 1.1"});
  const std::string text = report_text(f, false);
  EXPECT_THAT(text,
              AllOf(HasSubstr("native       avx512vnni"), HasSubstr("withheld     amx_tile"),
                    HasSubstr("0: A GPU, discrete, 8192 MiB"), HasSubstr("cannot be used: Vulkan 1.1"),
                    HasSubstr("'m.cqa' runs here"), HasSubstr("ceiling      9 tokens/s"), Not(HasSubstr("\033"))));
  EXPECT_THAT(report_text(f, true), HasSubstr("\033[32musable\033[0m"));
  const auto json = nlohmann::json::parse(report_json(f));
  EXPECT_EQ(json["native"], "avx512vnni");
  EXPECT_EQ(json["cpu"]["withheld"][0], "amx_tile");
  EXPECT_EQ(json["targets"][2]["usable"], false);
  EXPECT_EQ(json["gpus"][1]["why_not"], "Vulkan 1.1");
  EXPECT_EQ(json["file"]["runs"], true);
}

TEST(Doctor, ReadsTheSystemsFiles) {
  const test::TemporaryFolder root;
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root.path() + path).parent_path());
    std::ofstream(root.path() + path) << text;
  };
  Findings f;
  read_system_files(f, root.path());
  EXPECT_EQ(f.available, 0u);
  EXPECT_EQ(f.large_pages, "");
  write("/proc/meminfo", "MemTotal:  100 kB\nHugePages_Total: 3\nMemAvailable:   50 kB\n");
  write("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  write("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
  write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  read_system_files(f, root.path());
  EXPECT_EQ(f.available, 50u * 1024);
  EXPECT_EQ(f.large_pages, "never");
  EXPECT_EQ(f.large_page_bytes, 2097152u);
  EXPECT_EQ(f.governor, "powersave");
}

TEST(Doctor, SaysWhatSeveralMemoryNodesChange) {
  Findings f = sound();
  EXPECT_THAT(report_text(f, false), AllOf(HasSubstr("1 of memory"), Not(HasSubstr("--numa"))));
  f.nodes = 2;
  EXPECT_THAT(report_text(f, false), AllOf(HasSubstr("2 of memory: workers are bound"), HasSubstr("--numa off")));
  f.interleaved = true;
  EXPECT_THAT(report_text(f, false), HasSubstr("2 of memory: memory is interleaved, workers are bound; --numa off"));
}

TEST(Doctor, KnowsWhatTheSystemWithholds) {
  runtime::CpuState cpu;
  cpu.leaf7_ebx = 1u << 5 | 1u << 16; // AVX2 and AVX-512F,
  cpu.xcr0 = 0x6;                     // but no ZMM registers
  EXPECT_THAT(runtime::withheld_features(cpu), ::testing::ElementsAre("avx512f"));
}

} // namespace
} // namespace cortiq::tools
