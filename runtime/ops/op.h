#pragma once

// The table of operations: what each op of the schema becomes. An operation lives in one file, which reads and checks
// its FlatBuffer, and holds its code.

#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "formats/artifact/artifact_generated.h"
#include "formats/status.h"
#include "runtime/executor/program.h"
#include "runtime/loader/resolver.h"
#include "runtime/ops/router_lookahead.h"

namespace cortiq::runtime {

/// One matrix of every expert of a layer, for the store that keeps a part of them in memory.
struct ExpertBankRef {
  uint32_t layer = 0;                            ///< among layers of experts
  std::vector<std::span<const uint8_t>> experts; ///< packed, where the artifact is mapped
  uint64_t mapped_bytes = 0;                     ///< of them, read where they are mapped all the same: column scales
  uint32_t* number = nullptr;                    ///< the call's: which of the store's matrices it reads
};

/// Facts about the whole program that operations contribute to.
struct ProgramFacts {
  std::vector<KvShape> kv_layers;
  std::vector<RopeTableRef> rope_tables;
  std::vector<uint64_t> states; ///< numbers of each recurrent state; 0 while no operation has taken it
  std::vector<ExpertBankRef> expert_banks;
  std::vector<ProductRef> products; ///< plain ones, by what they write
  std::vector<RouterRef> routers;   ///< one a layer of experts
  uint64_t embedding_rows = 0;      ///< smallest of the program's embeddings; 0 = none
  std::vector<ResidualTap> taps;
};

/// Makes recurrent state `index`, which must hold the product of `extents` numbers, that of the calling operation.
StatusOr<uint32_t> take_state(const Resolver& resolver, ProgramFacts& facts, uint32_t index,
                              std::initializer_list<uint64_t> extents, const char* what);
/// Head counts and widths of a recurrent operation: none is 0 or beyond what models have.
Status check_sizes(std::initializer_list<uint64_t> sizes, const char* what);

using ResolveOp = Status (*)(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);

Status resolve_add(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_attention(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_attention_prep(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_causal_conv(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_cluster_logits(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_concat_heads(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_embed(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_gate(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_gated_delta(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_glu(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_hadamard(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_kda(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_layer_gate(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_logits(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_matmul(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_moe_combine(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_moe_gather(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_moe_glu(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_moe_matmul(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_moe_plan(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_moe_route(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_norm(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_place(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_quantize(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_resonance(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_short_conv(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_vmf_phase(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);
Status resolve_tap(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out);

struct OpRow {
  artifact::Op op;
  ResolveOp resolve;
};

/// One row an operation.
std::span<const OpRow> op_table();

} // namespace cortiq::runtime
