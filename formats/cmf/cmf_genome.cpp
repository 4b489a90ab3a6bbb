#include <algorithm>
#include <array>

#include "formats/cmf/cmf_extensions.h"
#include "formats/cmf/hash64.h"
#include "formats/cmf/json_fields.h"

namespace cortiq::formats {
namespace {

constexpr std::array<std::string_view, 4> kStatuses = {"pre_chat", "sealed", "candidate", "rejected"};

Status check_lineage(const Json& lineage) {
  if (!lineage.is_array())
    return invalid("lineage is not an array");
  std::optional<uint64_t> last;
  for (size_t i = 0; i < lineage.size(); ++i) {
    const std::string where = "lineage[" + std::to_string(i) + "]";
    uint64_t seq = 0;
    std::string event;
    JsonFields f(lineage[i], where);
    f.required("seq", seq);
    f.required("event", event);
    CORTIQ_RETURN_IF_ERROR(f.status());
    if (event.empty())
      return invalid(where + ".event is empty");
    if (last && seq <= *last)
      return invalid(where + ".seq is " + std::to_string(seq) + ", not above the " + std::to_string(*last) +
                     " before it");
    last = seq;
  }
  return {};
}

Status check_record(const CmfFile& file, const Json& genome) {
  std::string id, status, trunk, master, encoding;
  std::optional<uint32_t> experts;
  uint64_t generation = 0;
  JsonFields f(genome, "genome");
  f.required("id", id);
  f.required("generation", generation);
  f.required("status", status);
  f.required("trunk_hash", trunk);
  f.required("encoding", encoding);
  f.required("master_trunk_hash", master);
  f.optional("moe_experts", experts);
  CORTIQ_RETURN_IF_ERROR(f.status());
  if (id.empty() || encoding.empty())
    return invalid("genome.id or genome.encoding is empty");
  if (std::find(kStatuses.begin(), kStatuses.end(), status) == kStatuses.end())
    return invalid("genome.status is " + quote(status) + ", expected pre_chat, sealed, candidate or rejected");
  if (!parse_hash64(trunk) || !parse_hash64(master))
    return invalid("genome.trunk_hash or genome.master_trunk_hash is not sixteen hexadecimal digits");
  if (encoding == "f32" && parse_hash64(trunk) != parse_hash64(master))
    return invalid("genome.trunk_hash and genome.master_trunk_hash differ, which encoding f32 does not permit");
  const std::optional<CmfMoe>& moe = file.arch().moe;
  if (experts && (!moe || *experts != moe->num_experts))
    return invalid("genome.moe_experts is " + std::to_string(*experts) + ", but arch.moe.num_experts is " +
                   (moe ? std::to_string(moe->num_experts) : "absent"));
  if (file.vocab().empty())
    return invalid("a genome needs a vocab section, and this file has none");
  const Json provenance = file.header().value("provenance", Json());
  if (provenance.is_object() && provenance.contains("o1_attn"))
    return invalid("provenance.o1_attn does not belong into a genome file");
  return {};
}

} // namespace

Status check_cmf_genome(const CmfFile& file) {
  const JsonFields header(file.header(), "header");
  if (const Json* lineage = header.present("lineage"))
    CORTIQ_RETURN_IF_ERROR(check_lineage(*lineage));
  const Json* genome = header.present("genome");
  return genome ? check_record(file, *genome) : Status();
}

} // namespace cortiq::formats
