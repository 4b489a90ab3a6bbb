// Genome, lineage, skills and router policy: a sound file of each opens, and every rule that it can break is named.

#include <cstring>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/cmf/cmf_experts.h"
#include "test/unit/cmf/sample.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

/// Payload of one tensor.
struct Part {
  std::string name;
  uint16_t dtype;
  std::vector<uint64_t> shape;
  std::vector<uint8_t> bytes;
};

template <class T>
std::vector<uint8_t> packed(std::initializer_list<T> values) {
  std::vector<uint8_t> out(values.size() * sizeof(T));
  std::memcpy(out.data(), std::data(values), out.size());
  return out;
}

Part floats(const std::string& name, std::vector<uint64_t> shape) {
  uint64_t count = 1;
  for (const uint64_t n : shape)
    count *= n;
  return {name, 0, std::move(shape), std::vector<uint8_t>(count * 4, 0)};
}

std::vector<uint8_t> text(std::string_view characters) {
  return {characters.begin(), characters.end()};
}

constexpr const char* kHash = "0123456789abcdef";

/// A genome with one skill of each kind and a router, in two layers of which the second is a mixture.
struct Sample {
  Json header = minimal_header();
  std::vector<Part> parts;
  bool vocab = true;

  Sample() {
    Json& arch = header["arch"];
    arch["hidden_size"] = 4;
    arch["num_layers"] = 2;
    arch["layer_types"] = {"FullAttention", "FullAttention"};
    arch["moe"] = {{"num_experts", 1}, {"top_k", 1}, {"moe_intermediate_size", 4}, {"router_resonance", true}};
    header["genome"] = {{"id", "g"},           {"generation", 1},    {"status", "sealed"},
                        {"trunk_hash", kHash}, {"encoding", "q4tp"}, {"master_trunk_hash", kHash},
                        {"moe_experts", 1}};
    header["lineage"] = {{{"seq", 1}, {"event", "made"}}, {{"seq", 4}, {"event", "sealed"}}};
    const Json bound = {{"genome_id", "g"}, {"generation", 1}, {"master_trunk_hash", kHash}};
    const Json selection = {
        {"metric", "mse_unit"}, {"phi_layer", 0}, {"rank", 1}, {"mean", "AAAAAAAAAAA="}, {"basis", "AAAAAAAAAAA="}};
    const auto effect = [](uint32_t layer, const char* change) {
      return Json{{"first_affected_layer", layer}, {"switch", change}, {"state_bytes_added", 0}};
    };
    header["skills"] = {{{"id", "f"},
                         {"kind", "ffn_replace"},
                         {"status", "active"},
                         {"bound", bound},
                         {"layers", {1}},
                         {"selection", selection},
                         {"state_effect", effect(1, "transparent")},
                         {"overrides", {{{"name", "model.layers.1.mlp.up_proj.weight"}, {"base_hash", kHash}}}}},
                        {{"id", "e"},
                         {"kind", "expert_append"},
                         {"status", "active"},
                         {"bound", bound},
                         {"layers", {1}},
                         {"state_effect", effect(1, "sequence_start")},
                         {"experts", {{"count", 1}, {"shell_quantile", 0.9}, {"rank", 0}}}},
                        {{"id", "l"},
                         {"kind", "lookup"},
                         {"status", "retired"},
                         {"bound", bound},
                         {"state_effect", effect(0, "transparent")},
                         {"lookup",
                          {{"entries", 2},
                           {"keys", 2},
                           {"key_norm", "cmf-key-v2"},
                           {"langs", {"en"}},
                           {"fields", {"a"}},
                           {"policy", "key_first"}}}}};
    header["router"] = {
        {"version", 2},
        {"policy", "backbone_gated"},
        {"granularity", "request"},
        {"margin", 0.1},
        {"skills_hash", kHash},
        {"base", selection},
        {"phi",
         {{"layer", 0}, {"pool", "span_mean"}, {"norm", "unit"}, {"prefix_ids", {1}}, {"suffix_ids", Json::array()}}}};
    for (const std::string prefix : {"", "skill.f."})
      parts.push_back(floats(prefix + "model.layers.1.mlp.up_proj.weight", {4, 4}));
    for (const std::string expert : {"model.layers.1.mlp.experts.0.", "skill.e.model.layers.1.mlp.experts.1."}) {
      for (const char* matrix : {"gate_proj.weight", "up_proj.weight", "down_proj.weight"})
        parts.push_back(floats(expert + matrix, {4, 4}));
      parts.push_back(floats(expert + "desc.mu", {4}));
      for (const char* number : {"desc.bias", "desc.shell"})
        parts.push_back(floats(expert + number, {1}));
    }
    parts.push_back({"skill.l.lookup.keys.hash", 18, {2}, packed<uint64_t>({3, 9})});
    parts.push_back({"skill.l.lookup.keys.entry", 17, {2}, packed<uint32_t>({0, 1})});
    parts.push_back({"skill.l.lookup.entries.off", 18, {3}, packed<uint64_t>({0, 2, 10})});
    parts.push_back({"skill.l.lookup.text", 6, {10}, text(R"({}{"a": 1})")});
  }

  Part& part(const std::string& name) {
    for (Part& p : parts)
      if (p.name == name)
        return p;
    ADD_FAILURE() << name;
    return parts[0];
  }
  void drop(const std::string& name) {
    std::erase_if(parts, [&](const Part& p) { return p.name == name; });
  }

  Status open() const {
    const test::ScratchFolder folder;
    CmfWriter writer(header);
    for (const Part& p : parts)
      writer.add_tensor(p.name, p.dtype, p.shape, p.bytes);
    if (vocab)
      writer.set_vocab(test::bytes_of("{\"model\":{}}"));
    const Status written = writer.write(folder / "m.cmf");
    return written.ok() ? CmfFile::open(folder / "m.cmf").status() : written;
  }
};

struct Case {
  const char* word; ///< stands in the message
  std::function<void(Sample&)> damage;
};

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    Sample sample;
    c.damage(sample);
    const Status status = sample.open();
    ASSERT_FALSE(status.ok()) << "accepted although wrong: " << c.word;
    EXPECT_NE(status.code(), StatusCode::kInternal);
    EXPECT_TRUE(test::is_one_sentence(status.message())) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("m.cmf"));
    EXPECT_THAT(status.message(), HasSubstr(c.word));
  }
}

TEST(CmfExtensions, ASoundFileOpensAndIsRefusedForRunning) {
  const Status status = Sample().open();
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(CmfExtensions, GenomeAndLineageKeepTheirRules) {
  expect_refused({
      {"genome.id", [](Sample& s) { s.header["genome"]["id"] = ""; }},
      {"genome.generation", [](Sample& s) { s.header["genome"]["generation"] = -1; }},
      {"genome.status", [](Sample& s) { s.header["genome"]["status"] = "wild"; }},
      {"hexadecimal", [](Sample& s) { s.header["genome"]["trunk_hash"] = "xyz"; }},
      {"encoding f32",
       [](Sample& s) {
         s.header["genome"]["encoding"] = "f32";
         s.header["genome"]["trunk_hash"] = "ffffffffffffffff";
       }},
      {"genome.moe_experts", [](Sample& s) { s.header["genome"]["moe_experts"] = 7; }},
      {"vocab section", [](Sample& s) { s.vocab = false; }},
      {"o1_attn", [](Sample& s) { s.header["provenance"] = {{"o1_attn", true}}; }},
      {"lineage is not an array", [](Sample& s) { s.header["lineage"] = 3; }},
      {"lineage[1].seq", [](Sample& s) { s.header["lineage"][1]["seq"] = 1; }},
      {"lineage[0].event", [](Sample& s) { s.header["lineage"][0]["event"] = ""; }},
  });
}

TEST(CmfExtensions, RecordsNameWhoAndWhatTheyAre) {
  expect_refused({
      {"skills[0].id", [](Sample& s) { s.header["skills"][0]["id"] = "a.b"; }},
      {"skills[0].id", [](Sample& s) { s.header["skills"][0]["id"] = "backbone"; }},
      {"another record", [](Sample& s) { s.header["skills"][1]["id"] = "f"; }},
      {"skills[0].kind", [](Sample& s) { s.header["skills"][0]["kind"] = "mask_only"; }},
      {"skills[0].kind", [](Sample& s) { s.header["skills"][0]["kind"] = "dance"; }},
      {"skills[0].status", [](Sample& s) { s.header["skills"][0]["status"] = "tired"; }},
      {"skills[0].bound is missing", [](Sample& s) { s.header["skills"][0].erase("bound"); }},
      {"bound.generation", [](Sample& s) { s.header["skills"][0]["bound"]["generation"] = 2; }},
      {"state_effect is missing", [](Sample& s) { s.header["skills"][0].erase("state_effect"); }},
      {"first_affected_layer", [](Sample& s) { s.header["skills"][0]["state_effect"]["first_affected_layer"] = "x"; }},
      {"names a genome", [](Sample& s) { s.header.erase("genome"); }},
      {"belongs to no skill record", [](Sample& s) { s.parts.push_back(floats("skill.stray.norm", {4})); }},
  });
}

TEST(CmfExtensions, ReplacementsStandBesideWhatTheyReplace) {
  const std::string name = "model.layers.1.mlp.up_proj.weight";
  expect_refused({
      {"does not belong", [](Sample& s) { s.header["skills"][0]["experts"] = Json::object(); }},
      {"overrides is no list", [](Sample& s) { s.header["skills"][0]["overrides"] = Json::array(); }},
      {"names no tensor of a feed-forward",
       [](Sample& s) { s.header["skills"][0]["overrides"][0]["name"] = "model.layers.9.mlp.up_proj.weight"; }},
      {"names no tensor of a feed-forward",
       [](Sample& s) { s.header["skills"][0]["overrides"][0]["name"] = "model.norm.weight"; }},
      {"is missing", [&](Sample& s) { s.drop("skill.f." + name); }},
      {"is missing", [&](Sample& s) { s.drop(name); }},
      {"what it replaces", [&](Sample& s) { s.part("skill.f." + name) = floats("skill.f." + name, {2, 8}); }},
      {"twice",
       [](Sample& s) {
         Json& overrides = s.header["skills"][0]["overrides"];
         overrides.push_back(Json(overrides[0]));
       }},
      {"base_hash", [](Sample& s) { s.header["skills"][0]["overrides"][0]["base_hash"] = "12"; }},
      {"not the hash of", [](Sample& s) { s.header["genome"]["encoding"] = "f32"; }},
      {"not the layers", [](Sample& s) { s.header["skills"][0]["layers"] = {0}; }},
      {"layers has 1 twice", [](Sample& s) { s.header["skills"][0]["layers"] = {1, 1}; }},
      {"does not fit", [](Sample& s) { s.header["skills"][0]["state_effect"]["switch"] = "sudden"; }},
      {"does not fit", [](Sample& s) { s.header["arch"]["num_loops"] = 2; }},
  });
}

TEST(CmfExtensions, AppendedExpertsAreComplete) {
  const std::string expert = "skill.e.model.layers.1.mlp.experts.1.";
  expect_refused({
      {"router_resonance", [](Sample& s) { s.header["arch"]["moe"]["router_resonance"] = false; }},
      {"count of 0", [](Sample& s) { s.header["skills"][1]["experts"]["count"] = 0; }},
      {"shell_quantile", [](Sample& s) { s.header["skills"][1]["experts"]["shell_quantile"] = 1.5; }},
      {"is missing", [](Sample& s) { s.header["skills"][1]["experts"]["count"] = 2147483648u; }},
      {"desc.u' is missing", [](Sample& s) { s.header["skills"][1]["experts"]["rank"] = 2; }},
      {"is missing", [&](Sample& s) { s.drop(expert + "desc.mu"); }},
      {"expert 0", [&](Sample& s) { s.part(expert + "desc.mu") = floats(expert + "desc.mu", {8}); }},
      {"finite", [&](Sample& s) { s.part(expert + "desc.bias").bytes = packed<uint32_t>({0x7f800000}); }},
      {"layers is empty", [](Sample& s) { s.header["skills"][1]["layers"] = Json::array(); }},
      {"beyond", [](Sample& s) { s.header["skills"][1]["layers"] = {2}; }},
      {"state_effect", [](Sample& s) { s.header["skills"][1]["state_effect"]["state_bytes_added"] = 4; }},
      {"belongs to no skill record", [&](Sample& s) { s.parts.push_back(floats(expert + "desc.more", {1})); }},
      {"behind a retired",
       [](Sample& s) {
         s.header["skills"][1]["status"] = "retired";
         Json second = s.header["skills"][1];
         second["id"] = "e2";
         second["status"] = "active";
         s.header["skills"].push_back(second);
       }},
  });
}

TEST(CmfExtensions, LookupTablesAreWhatTheySay) {
  const std::string prefix = "skill.l.lookup.";
  expect_refused({
      {"lookup", [](Sample& s) { s.header["skills"][2].erase("lookup"); }},
      {"no entries", [](Sample& s) { s.header["skills"][2]["lookup"]["entries"] = 0; }},
      {"key_norm", [](Sample& s) { s.header["skills"][2]["lookup"]["key_norm"] = "v9"; }},
      {"twice", [](Sample& s) { s.header["skills"][2]["lookup"]["fields"] = {"a", "a"}; }},
      {"expected a vector of 3", [](Sample& s) { s.header["skills"][2]["lookup"]["keys"] = 3; }},
      {"expected a vector of", [](Sample& s) { s.header["skills"][2]["lookup"]["entries"] = 2147483648u; }},
      {"is missing", [&](Sample& s) { s.drop(prefix + "text"); }},
      {"expected a vector", [&](Sample& s) { s.part(prefix + "keys.entry").dtype = 0; }},
      {"strictly ascending", [&](Sample& s) { s.part(prefix + "keys.hash").bytes = packed<uint64_t>({9, 9}); }},
      {"entry 2 of 2", [&](Sample& s) { s.part(prefix + "keys.entry").bytes = packed<uint32_t>({0, 2}); }},
      {"entries.off", [&](Sample& s) { s.part(prefix + "entries.off").bytes = packed<uint64_t>({2, 0, 10}); }},
      {"entries.off", [&](Sample& s) { s.part(prefix + "entries.off").bytes = packed<uint64_t>({0, 2, 11}); }},
      {"entries.off",
       [&](Sample& s) { s.part(prefix + "entries.off").bytes = packed<uint64_t>({~0ull, ~0ull, ~0ull}); }},
      {"slot 1", [&](Sample& s) { s.part(prefix + "entries.off").bytes = packed<uint64_t>({0, 2, 9}); }},
      {"not a JSON object", [&](Sample& s) { s.part(prefix + "text").bytes = text("{}[1,2,34]"); }},
      {"UTF-8", [&](Sample& s) { s.part(prefix + "text").bytes[5] = 0xff; }},
      {"does not belong", [](Sample& s) { s.header["skills"][2]["layers"] = {0}; }},
  });
}

TEST(CmfExtensions, TheRouterIsTheOneThatIsSpecified) {
  expect_refused({
      {"router.version", [](Sample& s) { s.header["router"]["version"] = 3; }},
      {"router.policy", [](Sample& s) { s.header["router"]["policy"] = "dice"; }},
      {"router.granularity", [](Sample& s) { s.header["router"]["granularity"] = "token"; }},
      {"router.margin", [](Sample& s) { s.header["router"]["margin"] = -0.5; }},
      {"router.skills_hash", [](Sample& s) { s.header["router"]["skills_hash"] = ""; }},
      {"router.phi", [](Sample& s) { s.header["router"].erase("phi"); }},
      {"router.phi.layer", [](Sample& s) { s.header["router"]["phi"]["layer"] = 2; }},
      {"router.phi.pool", [](Sample& s) { s.header["router"]["phi"]["pool"] = "max"; }},
      {"router.phi.norm", [](Sample& s) { s.header["router"]["phi"]["norm"] = "none"; }},
      {"router.phi.prefix_ids", [](Sample& s) { s.header["router"]["phi"]["prefix_ids"] = {-1}; }},
      {"router.base.metric", [](Sample& s) { s.header["router"]["base"]["metric"] = "mse"; }},
      {"router.base.phi_layer", [](Sample& s) { s.header["router"]["base"]["phi_layer"] = 1; }},
      {"router.base.mean", [](Sample& s) { s.header["router"]["base"]["mean"] = "AAAA"; }},
      {"selection.basis", [](Sample& s) { s.header["skills"][0]["selection"]["basis"] = "AAAAAAAA AA="; }},
      {"selection.basis", [](Sample& s) { s.header["skills"][0]["selection"]["rank"] = 2147483648u; }},
      {"selection.metric", [](Sample& s) { s.header["skills"][0]["selection"]["metric"] = "cosine"; }},
      {"not behind",
       [](Sample& s) {
         s.header["router"]["phi"]["layer"] = 1;
         s.header["router"]["base"]["phi_layer"] = 1;
         s.header["skills"][0]["selection"]["phi_layer"] = 1;
       }},
  });
}

/// A router of `rows` rows over `experts` experts.
Status check_mixture(uint64_t rows, uint32_t experts, uint32_t announced) {
  const test::ScratchFolder folder;
  Json header = minimal_header();
  if (announced != 0)
    header["arch"]["moe"] = {{"num_experts", announced}, {"top_k", 1}, {"moe_intermediate_size", 4}};
  CmfWriter writer(header);
  std::vector<Part> parts = {floats("model.layers.0.mlp.gate.weight", {rows, 4})};
  for (uint32_t e = 0; e < experts; ++e)
    parts.push_back(floats("model.layers.0.mlp.experts." + std::to_string(e) + ".gate_proj.weight", {4, 4}));
  for (const Part& p : parts)
    writer.add_tensor(p.name, p.dtype, p.shape, p.bytes);
  CORTIQ_RETURN_IF_ERROR(writer.write(folder / "m.cmf"));
  CORTIQ_ASSIGN_OR_RETURN(const CmfFile file, CmfFile::open(folder / "m.cmf"));
  return check_cmf_experts(file);
}

TEST(CmfExperts, RoutersHaveARowForEveryExpert) {
  EXPECT_TRUE(check_mixture(3, 3, 3).ok());
  EXPECT_TRUE(check_mixture(2, 2, 3).ok()) << "experts may have been removed from a layer";
  EXPECT_THAT(check_mixture(2, 3, 3).message(), HasSubstr("but its layer has 3 experts"));
  EXPECT_THAT(check_mixture(3, 3, 2).message(), HasSubstr("but its layer has 2 experts"));
  EXPECT_THAT(check_mixture(3, 0, 3).message(), HasSubstr("experts.0.gate_proj.weight' is missing"));
  EXPECT_THAT(check_mixture(3, 3, 0).message(), HasSubstr("without arch.moe"));
}

} // namespace
} // namespace cortiq::formats
