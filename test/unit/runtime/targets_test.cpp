// Which of an artifact's targets is taken, on machines that need not be this one, and tables that lie.

#include "runtime/loader/targets.h"

#include <elf.h>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/artifact/target_needs.h"
#include "runtime/loader/load.h"
#include "test/unit/runtime/temporary_folder.h"
#include "test/unit/runtime/tiny_model.h"

namespace cortiq::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A machine with everything that the feature table knows.
TargetMachine full_machine() {
  TargetMachine out;
  for (uint32_t CpuState::* word : {&CpuState::leaf1_ecx, &CpuState::leaf7_ebx, &CpuState::leaf7_ecx,
                                    &CpuState::leaf7_edx, &CpuState::leaf7_1_eax, &CpuState::leaf7_1_edx})
    out.cpu.*word = ~0u;
  out.cpu.xcr0 = ~uint64_t{0};
  out.permission = [](std::span<const std::string>) { return Status(); };
  return out;
}

std::vector<ArtifactTarget> targets_of(std::initializer_list<const char*> names) {
  std::vector<ArtifactTarget> out;
  for (const char* name : names) {
    const auto features = formats::find_target_needs(name)->features;
    out.push_back({name, {features.begin(), features.end()}, {}});
  }
  return out;
}

const std::vector<ArtifactTarget> kAll = targets_of({"x86-64-v3", "avxvnni", "avx512vnni", "amx"});

/// The name of what `machine` takes of all targets.
std::string taken(const TargetMachine& machine, std::string_view asked = "") {
  const auto choice = choose_target(kAll, asked, machine);
  return choice.ok() ? kAll[choice->index].name : choice.status().message();
}

TEST(ChooseTarget, TakesTheLastThatTheMachineCanRun) {
  TargetMachine machine = full_machine();
  EXPECT_EQ(taken(machine), "amx");
  machine.cpu.leaf7_edx = 0; // no tiles
  EXPECT_EQ(taken(machine), "avx512vnni");
  machine.cpu.leaf7_ebx &= ~(1u << 16); // no avx512f
  EXPECT_EQ(taken(machine), "avxvnni");
  machine.cpu.leaf7_1_eax = 0;
  EXPECT_EQ(taken(machine), "x86-64-v3");
  machine.cpu.leaf7_1_eax = ~0u; // avx_vnni, but not avx2
  machine.cpu.leaf7_ebx = 0;
  EXPECT_THAT(taken(machine), AllOf(HasSubstr("x86-64-v3, avxvnni, avx512vnni and amx, none of which runs here"),
                                    HasSubstr("x86-64-v3: its code needs avx2, bmi2, which this CPU does not have")));
}

TEST(ChooseTarget, TilesNeedTheSystemsConsent) {
  TargetMachine machine = full_machine();
  machine.cpu.xcr0 = 0xe6; // the system saves no tiles
  EXPECT_EQ(taken(machine), "avx512vnni");
  machine = full_machine();
  machine.permission = [](std::span<const std::string> features) {
    return features[0] == "amx_int8" ? unsupported("the system says no") : Status();
  };
  const auto choice = choose_target(kAll, "", machine);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(kAll[choice->index].name, "avx512vnni");
  EXPECT_THAT(choice->why, AllOf(HasSubstr("best that runs here of x86-64-v3, avxvnni, avx512vnni and amx"),
                                 HasSubstr("(amx: the system says no)")));
}

TEST(ChooseTarget, ANameIsTakenOrRefused) {
  TargetMachine machine = full_machine();
  EXPECT_EQ(taken(machine, "avxvnni"), "avxvnni");
  machine.cpu.leaf7_edx = 0;
  EXPECT_THAT(taken(machine, "amx"), AllOf(HasSubstr("it holds code for x86-64-v3, avxvnni, avx512vnni and amx"),
                                           HasSubstr("'amx' cannot run here: its code needs amx_int8, amx_tile")));
  EXPECT_THAT(taken(machine, "z80"), HasSubstr("not for 'z80'"));
  EXPECT_EQ(exit_code(choose_target(kAll, "z80", machine).status()), 2);
}

TEST(ChooseTarget, WithoutAChoiceThereIsNoReason) {
  const auto one = targets_of({"avxvnni"});
  EXPECT_EQ(choose_target(one, "", full_machine())->why, "");
  EXPECT_THAT(choose_target(kAll, "", full_machine())->why, HasSubstr("the best of"));
}

TEST(Targets, KernelsOfAnotherTargetAreNotCalled) {
  EXPECT_TRUE(may_call("x86-64-v3", "gemv_f32_f32_q4_0_r16_k64_1x16_v3"));
  EXPECT_TRUE(may_call("amx", "gemv_1x16_amx"));
  EXPECT_FALSE(may_call("x86-64-v3", "gemv_1x16_amx"));
  EXPECT_FALSE(may_call("amx", "gemv_1x16_v3"));
  EXPECT_TRUE(may_call("amx", "gemv_1x16_test")); // says nothing of a target
}

/// A manifest of two targets, changed by `change`, as read_targets() sees it: the refusal, or "" where there is none.
std::string read(const std::function<void(artifact::ManifestT&)>& change, uint32_t machine = EM_X86_64) {
  artifact::ManifestT manifest;
  manifest.architecture = "test";
  manifest.compiler_version = "0";
  for (const ArtifactTarget& target : targets_of({"x86-64-v3", "avx512vnni"})) {
    auto row = std::make_unique<artifact::TargetT>();
    row->name = target.name;
    row->features = target.features;
    row->program_offset = 128 * manifest.targets.size();
    row->program_bytes = 100;
    manifest.targets.push_back(std::move(row));
  }
  manifest.target = manifest.targets[0]->name;
  manifest.features = manifest.targets[0]->features;
  change(manifest);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(artifact::Manifest::Pack(builder, &manifest));
  const std::vector<uint8_t> section(228);
  const auto read =
      read_targets(*flatbuffers::GetRoot<artifact::Manifest>(builder.GetBufferPointer()), section, machine);
  EXPECT_NE(exit_code(read.status()), 1);
  return read.status().message();
}

TEST(Targets, TablesThatLieAreRefused) {
  using Manifest = artifact::ManifestT;
  EXPECT_EQ(read([](Manifest&) {}), "");
  EXPECT_THAT(read([](Manifest& m) { m.targets[1]->program_offset = 64; }), HasSubstr("over another"));
  EXPECT_THAT(read([](Manifest& m) { m.targets[1]->program_offset = 120; }), HasSubstr("outside its section"));
  EXPECT_THAT(read([](Manifest& m) { m.targets[1]->program_bytes = 101; }), HasSubstr("outside its section"));
  EXPECT_THAT(read([](Manifest& m) { m.targets[1]->program_bytes = ~uint64_t{0}; }), HasSubstr("outside its section"));
  EXPECT_THAT(read([](Manifest& m) { m.targets[1]->program_offset = ~uint64_t{63}; }), HasSubstr("outside"));
  EXPECT_THAT(read([](Manifest& m) { m.targets[0]->program_bytes = 0; }), HasSubstr("'x86-64-v3' lies outside"));
  EXPECT_THAT(read([](Manifest& m) { m.targets[1]->name = ""; }), HasSubstr("a name of 0 bytes"));
  EXPECT_THAT(read([](Manifest& m) { m.targets[1]->name = std::string(65, 'a'); }), HasSubstr("65 bytes"));
  EXPECT_THAT(read([](Manifest& m) { m.targets[1]->name = m.targets[0]->name; }), HasSubstr("two targets named"));
  EXPECT_THAT(read([](Manifest& m) { m.targets[1]->features = {"avx", "avx2"}; }),
              HasSubstr("'avx512vnni' does not name the CPU feature avx512_vnni"));
  EXPECT_THAT(read([](Manifest& m) { m.targets[1]->features.resize(65, "avx"); }), HasSubstr("65 CPU features"));
  EXPECT_THAT(read([](Manifest& m) { m.target = "avxvnni"; }), HasSubstr("is not the one of its manifest, 'avxvnni'"));
  EXPECT_THAT(read([](Manifest& m) { m.features.pop_back(); }), HasSubstr("is not the one of its manifest"));
  EXPECT_THAT(read([](Manifest& m) {
                for (int i = 0; i < 15; ++i)
                  m.targets.push_back(std::make_unique<artifact::TargetT>(*m.targets[1]));
              }),
              HasSubstr("lists 17 targets"));
  EXPECT_THAT(read([](Manifest&) {}, EM_AARCH64), HasSubstr("another machine"));
  // A table of none is that of an artifact from before there were any.
  EXPECT_EQ(read([](Manifest& m) { m.targets.clear(); }), "");
  EXPECT_THAT(read([](Manifest& m) {
                m.targets.clear();
                m.features.clear();
              }),
              HasSubstr("does not name the CPU feature avx"));
}

TEST(Targets, ArtifactsOfSeveralLoadAnyOfThem) {
  test::TemporaryFolder folder;
  test::TinyModel tiny;
  tiny.targets = {"plain", "better"};
  const std::string path = folder.file("m.cqa");
  ASSERT_TRUE(tiny.write(path).ok());
  const auto best = load_artifact(path, {});
  ASSERT_TRUE(best.ok()) << best.status().message();
  EXPECT_EQ((*best)->targets[(*best)->taken.index].name, "better");
  const auto plain = load_artifact(path, {.target = "plain"});
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ((*plain)->taken.index, 0u);
  EXPECT_NE((*plain)->program_table, nullptr);
  EXPECT_THAT(load_artifact(path, {.target = "none"}).status().message(),
              HasSubstr("plain and better, not for 'none'"));
  EXPECT_TRUE(check_artifact(path, {.verify_weights = true}).ok());
}

} // namespace
} // namespace cortiq::runtime
