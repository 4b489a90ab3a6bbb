#include "runtime/loader/load.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <thread>
#include <utility>

#include "formats/artifact/artifact_hash.h"
#include "formats/checked_math.h"
#include "formats/page_release.h"
#include "formats/quote.h"
#include "runtime/loader/resolver.h"
#include "runtime/loader/signature.h"
#include "runtime/loader/symbols.h"
#include "runtime/loader/verified_root.h"
#include "runtime/ops/gate_stages.h"
#include "runtime/ops/moe_stages.h"
#include "runtime/ops/op.h"
#include "runtime/overlay/overlay.h"

namespace cortiq::runtime {
namespace {

using formats::ArtifactSection;
using formats::quote;

// Bounds that no model reaches; they keep damaged numbers away from allocations and index arithmetic.
constexpr uint64_t kMaxStages = 1 << 17;
constexpr uint64_t kMaxBatch = 1 << 16;
constexpr uint64_t kMaxContext = uint64_t{1} << 31;
constexpr uint64_t kMaxDimension = 1 << 20;
constexpr uint64_t kMaxElements = uint64_t{1} << 32;
constexpr uint32_t kMaxRecords = 1 << 16;
constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 44;
constexpr uint32_t kMaxTileTokens = 512;

const formats::Codec* find_codec_id(uint16_t id) {
  for (const formats::Codec& codec : formats::codec_table())
    if (static_cast<uint16_t>(codec.id) == id)
      return &codec;
  return nullptr;
}

/// Where rows start inside a packed tensor; leaves row_bytes 0 for payloads whose rows do not follow each other.
Status address_rows(WeightRef& weight) {
  if (weight.layout == formats::LayoutId::kR16) {
    CORTIQ_ASSIGN_OR_RETURN(const formats::R16Format format, formats::r16_format(*weight.codec, weight.cols));
    weight.tensor_bytes = format.tensor_bytes;
    weight.row_bytes = format.row_bytes();
  } else if (weight.layout == formats::LayoutId::kVerbatim && weight.codec->block_bytes != 0 && !weight.codec->flat &&
             weight.cols % weight.codec->block == 0) {
    weight.row_bytes = weight.cols / weight.codec->block * weight.codec->block_bytes;
  }
  return {};
}

StatusOr<WeightRef> check_weight(const artifact::Weight& entry) {
  WeightRef out;
  out.entry = &entry;
  const std::string name = "weight " + quote(entry.name()->string_view());
  out.codec = find_codec_id(entry.codec());
  if (!out.codec || out.codec->form == formats::DotForm::kNone)
    return unsupported(name + " has codec " + std::to_string(entry.codec()) + ", which this version does not know");
  if (entry.layout() > static_cast<uint8_t>(formats::LayoutId::kPlanes))
    return unsupported(name + " has layout " + std::to_string(entry.layout()) + ", which this version does not know");
  out.layout = static_cast<formats::LayoutId>(entry.layout());
  out.rows = entry.rows();
  out.cols = entry.cols();
  if (out.rows == 0 || out.cols == 0 || out.rows > kMaxElements || out.cols > kMaxElements)
    return invalid(name + " has the shape " + std::to_string(out.rows) + " x " + std::to_string(out.cols));
  const auto bytes = formats::packed_bytes(*out.codec, out.layout, out.rows, out.cols);
  if (!bytes.ok())
    return bytes.status().with_prefix(name);
  if (entry.blend() && entry.blend()->size() != 0) {
    out.mixed = true;
    if (out.codec->id != formats::CodecId::kF32 || entry.bytes() != 0)
      return invalid(name + " is mixed at run time, and so can only be f32 without bytes");
    CORTIQ_RETURN_IF_ERROR(address_rows(out).with_prefix(name));
    return out;
  }
  // What a payload of variable size says of itself is checked where its bytes are known.
  const bool fits = out.codec->variable_size ? entry.bytes() >= *bytes : entry.bytes() == *bytes;
  if (!fits || entry.offset() % 64 != 0)
    return invalid(name + " has " + std::to_string(entry.bytes()) + " bytes at offset " +
                   std::to_string(entry.offset()) + "; its shape needs " +
                   (out.codec->variable_size ? "at least " : "") + std::to_string(*bytes) + " at a multiple of 64");
  CORTIQ_RETURN_IF_ERROR(address_rows(out).with_prefix(name));
  return out;
}

/// Checks the weight table and returns the size its section must have.
StatusOr<uint64_t> check_weights(const artifact::Manifest& manifest, std::vector<WeightRef>& out) {
  uint64_t end = 0;
  for (const artifact::Weight* entry : *manifest.weights()) {
    CORTIQ_ASSIGN_OR_RETURN(WeightRef weight, check_weight(*entry));
    const auto weight_end =
        formats::checked_add(formats::checked_add(entry->offset(), entry->bytes()), formats::kLayoutTailPadding);
    if (!weight_end || *weight_end > (uint64_t{1} << 62))
      return invalid("weight " + quote(entry->name()->string_view()) + " ends beyond any file");
    end = std::max(end, *weight_end);
    out.push_back(weight);
  }
  return end;
}

/// The parts of mixed weights: stored ones of their shape, the model's own among them.
Status check_mixed(std::span<const WeightRef> weights) {
  for (const WeightRef& weight : weights) {
    if (!weight.mixed)
      continue;
    bool own = false;
    for (const artifact::BlendPart* part : *weight.entry->blend()) {
      own = own || part->skill() == kNoIndex;
      if (part->weight() >= weights.size() || weights[part->weight()].mixed ||
          weights[part->weight()].rows != weight.rows || weights[part->weight()].cols != weight.cols)
        return invalid("weight " + quote(weight.entry->name()->string_view()) + " is mixed of others than its like");
    }
    if (!own)
      return invalid("weight " + quote(weight.entry->name()->string_view()) + " is mixed without the model's own");
  }
  return {};
}

Status fill_weights(std::span<WeightRef> weights, std::span<uint8_t> memory, uint64_t seed, unsigned threads) {
  std::atomic<size_t> cursor{0};
  std::mutex mutex;
  Status failure;
  auto work = [&] {
    for (size_t i; (i = cursor.fetch_add(1)) < weights.size();) {
      const WeightRef& w = weights[i];
      if (w.mixed)
        continue;
      Status status = formats::fill_random(*w.codec, w.layout, w.rows, w.cols, seed + i,
                                           memory.subspan(w.entry->offset(), w.entry->bytes()));
      if (std::lock_guard lock(mutex); !status.ok() && failure.ok())
        failure = status.with_prefix("weight " + quote(w.entry->name()->string_view()));
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i)
    others.emplace_back(work);
  work();
  for (std::thread& thread : others)
    thread.join();
  return failure;
}

Status check_weight_hashes(const artifact::Manifest& manifest, std::span<const uint8_t> section,
                           const ArtifactLoadOptions& options) {
  const auto* root = manifest.weights_root();
  const auto* leaves = manifest.weights_leaves();
  const uint64_t count = formats::ceil_div(section.size(), formats::kWeightLeafBytes);
  if (count == 0)
    return {};
  if (!root || root->size() != sizeof(formats::Hash256) || !leaves ||
      leaves->size() != count * sizeof(formats::Hash256))
    return invalid("its manifest lacks the hashes of the weights");
  const formats::Hash256 top = formats::hash256({leaves->data(), leaves->size()});
  if (std::memcmp(top.data(), root->data(), top.size()) != 0)
    return invalid("its hashes of the weights do not match their root");
  if (!options.verify_weights)
    return {};
  const std::vector<uint8_t> found = formats::leaf_hashes(section, options.threads);
  const auto difference = std::mismatch(found.begin(), found.end(), leaves->data());
  if (difference.first == found.end())
    return {};
  const uint64_t leaf = static_cast<uint64_t>(difference.first - found.begin()) / sizeof(formats::Hash256);
  return invalid("its weights are damaged between bytes " + std::to_string(leaf * formats::kWeightLeafBytes) + " and " +
                 std::to_string((leaf + 1) * formats::kWeightLeafBytes) + " of their section; compile the model again");
}

/// Gives every weight its bytes: from the file, or from memory that is filled here.
Status place_weights(LoadedArtifact& artifact, std::vector<WeightRef>& weights, const ArtifactLoadOptions& options) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t needed, check_weights(*artifact.manifest, weights));
  CORTIQ_RETURN_IF_ERROR(check_mixed(weights));
  std::span<const uint8_t> section = artifact.file.section(ArtifactSection::kWeights);
  if (!artifact.manifest->weights_embedded()) {
    if (!options.fill_seed)
      return unsupported("it was compiled with --weights=none and can only be measured: cortiq-bench --fill SEED");
    artifact.filled = FilledWeights(needed, options.placement);
    if (artifact.filled.bytes().size() != needed)
      return io_error("there is no memory for " + std::to_string(needed) + " bytes of weights");
    CORTIQ_RETURN_IF_ERROR(fill_weights(weights, artifact.filled.bytes(), *options.fill_seed, options.threads));
    artifact.filled.protect();
    section = artifact.filled.bytes();
  } else {
    if (options.fill_seed)
      return invalid("it holds its weights; leave --fill out, which is for artifacts compiled with --weights=none");
    if (section.size() < needed)
      return invalid("its weights section has " + std::to_string(section.size()) + " bytes, its table needs " +
                     std::to_string(needed));
    CORTIQ_RETURN_IF_ERROR(check_weight_hashes(*artifact.manifest, section, options));
    if (options.placement.large_pages && options.memory == 0) {
      artifact.filled = FilledWeights(section.size(), options.placement);
      if (artifact.filled.bytes().size() != section.size())
        return io_error("there is no memory for a copy of " + std::to_string(section.size()) + " bytes of weights");
      copy_parallel(section, artifact.filled.bytes().data(), options.threads);
      artifact.filled.protect();
      section = artifact.filled.bytes();
    }
  }
  for (WeightRef& weight : weights) {
    weight.bytes = section.subspan(weight.entry->offset(), weight.entry->bytes());
    if (weight.codec->variable_size)
      CORTIQ_RETURN_IF_ERROR(formats::check_packed(*weight.codec, weight.layout, weight.bytes, weight.rows, weight.cols)
                                 .with_prefix("weight " + quote(weight.entry->name()->string_view())));
  }
  return {};
}

/// Whether a kernel's name, by the grammar of kernel names, says the tile and arms that its table entry says.
bool name_agrees(const artifact::Kernel& kernel) {
  const std::string_view name = kernel.name()->string_view();
  const std::string tile = "_k" + std::to_string(kernel.k()) + "_" + std::to_string(kernel.tokens()) + "x" +
                           std::to_string(kernel.rows()) + (kernel.bias() ? "_bias" : "") +
                           (kernel.residual() ? "_res_" : "_");
  const size_t at = name.find(tile);
  return at != std::string_view::npos && (kernel.bias() || name.find("_bias", at) == std::string_view::npos) &&
         (kernel.residual() || name.find("_res", at) == std::string_view::npos);
}

Status check_kernels(const LoadedArtifact& artifact, std::vector<KernelRef>& out) {
  const formats::ArtifactExtent code = artifact.file.header().sections[static_cast<uint32_t>(ArtifactSection::kCode)];
  const uint64_t image = artifact.file.header().sections[static_cast<uint32_t>(ArtifactSection::kWeights)].offset;
  CORTIQ_ASSIGN_OR_RETURN(const auto symbols, read_code_symbols(artifact.file.file().first(image)));
  for (const artifact::Kernel* entry : *artifact.program_table->kernels()) {
    const std::string name = "kernel " + quote(entry->name()->string_view());
    const bool inside = entry->offset() >= code.offset &&
                        formats::range_fits(entry->offset() - code.offset, entry->bytes(), code.bytes);
    const auto symbol = symbols.find(entry->name()->string_view());
    if (!inside || symbol == symbols.end() || symbol->second.offset != entry->offset() ||
        symbol->second.bytes != entry->bytes())
      return invalid(name + " does not stand where the symbol table says");
    if (entry->tokens() == 0 || entry->tokens() > kMaxTileTokens || entry->rows() == 0 ||
        entry->rows() > formats::kRowGroup || entry->from_tokens() > entry->tokens() ||
        (entry->from_tokens() != 0 && entry->k() > kMaxElements) || !name_agrees(*entry))
      return invalid(name + " has a tile that is impossible or not that of its name");
    if (!may_call(artifact.targets[artifact.taken.index].name, entry->name()->string_view()))
      return invalid(name + " is not one of the target " + quote(artifact.targets[artifact.taken.index].name));
    const auto address = reinterpret_cast<uintptr_t>(artifact.file.code_at(entry->offset()));
    out.push_back({entry, reinterpret_cast<formats::KernelFn>(address)});
  }
  return {};
}

uint64_t needed_bytes(const artifact::Buffer& buffer) {
  const uint64_t elements = buffer.elements(), records = buffer.records();
  switch (buffer.kind()) {
  case artifact::BufferKind::Q8Act:
    return records * formats::q8_act_layout(elements).bytes;
  case artifact::BufferKind::Q8Bf16Act:
    return records * formats::bf16_act_layout(elements).bytes;
  default: // integers take the room of floats
    return records * formats::f32_act_bytes(elements);
  }
}

Status check_buffers(const artifact::Program& program, uint64_t max_batch, std::vector<SlotRef>& out) {
  const uint64_t per_token = program.arena_bytes_per_token();
  const auto arena = formats::checked_mul(per_token, max_batch);
  if (!arena || *arena > kMaxArenaBytes || per_token == 0 || per_token % 64 != 0)
    return invalid("its arena of " + std::to_string(per_token) + " bytes a token is impossible");
  for (const artifact::Buffer* buffer : *program.buffers()) {
    const std::string name = "slot " + std::to_string(out.size());
    if (buffer->kind() > artifact::BufferKind::Q8Bf16Act)
      return unsupported(name + " is of a kind that this version does not know");
    if (buffer->elements() == 0 || buffer->elements() > kMaxElements || buffer->records() == 0 ||
        buffer->records() > kMaxRecords || buffer->bytes_per_token() % (64 * uint64_t{buffer->records()}) != 0 ||
        buffer->bytes_per_token() < needed_bytes(*buffer) || buffer->bytes_per_token() % 64 != 0 ||
        buffer->offset_per_token() % 64 != 0 ||
        !formats::range_fits(buffer->offset_per_token(), buffer->bytes_per_token(), per_token))
      return invalid(name + " does not fit its arena");
    out.push_back({buffer->offset_per_token() * max_batch, buffer->bytes_per_token(), buffer->elements(), true,
                   buffer->kind() == artifact::BufferKind::Q8Bf16Act});
  }
  if (out.empty())
    return invalid("its program has no slots");
  return {};
}

/// What kernels for many tokens read behind the last record of a batch: a block of tokens without the first one.
uint64_t tile_slack(const Resolver& resolver) {
  constexpr uint64_t kOtherTokens = formats::kTileKernelTokens - 1;
  uint64_t record = 0;
  bool floats = false;
  for (const KernelRef& kernel : resolver.kernels) {
    if (kernel.entry->from_tokens() == 0)
      continue;
    if (kernel.entry->act() == artifact::BufferKind::Q8Act)
      record = std::max(record, formats::q8_act_layout(kernel.entry->k()).bytes);
    else if (kernel.entry->act() == artifact::BufferKind::Q8Bf16Act)
      record = std::max(record, formats::bf16_act_layout(kernel.entry->k()).bytes);
    else
      floats = true;
  }
  // Floats may be columns of a wider row.
  for (const SlotRef& slot : resolver.slots)
    if (floats)
      record = std::max(record, slot.stride);
  return kOtherTokens * record;
}

Status check_tables(const artifact::Program& program, uint64_t max_batch, ProgramFacts& facts) {
  auto dimension = [](uint64_t value) { return value >= 1 && value <= kMaxDimension; };
  for (const artifact::KvLayer* layer : *program.kv_layers()) {
    if (!dimension(layer->kv_heads()) || !dimension(layer->k_dim()) || !dimension(layer->v_dim()))
      return invalid("the cache of layer " + std::to_string(facts.kv_layers.size()) + " has an impossible shape");
    KvShape& kv =
        facts.kv_layers.emplace_back(KvShape{layer->kv_heads(), layer->k_dim(), layer->v_dim(), layer->window()});
    if (!layer->ring())
      continue;
    if (kv.window == 0)
      return invalid("the cache of layer " + std::to_string(facts.kv_layers.size() - 1) +
                     " is a ring without a window");
    // A batch is appended before its queries look back.
    kv.ring = (kv.window + max_batch - 1 + kPositionBlock - 1) / kPositionBlock * kPositionBlock;
  }
  for (const artifact::RopeTable* table : *program.rope_tables()) {
    const auto* frequencies = table->inverse_frequencies();
    if (!dimension(frequencies->size()))
      return invalid("rope table " + std::to_string(facts.rope_tables.size()) + " has an impossible length");
    facts.rope_tables.push_back({{frequencies->begin(), frequencies->end()}, table->magnitude()});
  }
  return {};
}

Status resolve_stages(const artifact::Program& program, const Resolver& resolver, ProgramFacts& facts, size_t skills,
                      ResolvedProgram& resolved) {
  std::vector<Stage>& out = resolved.stages;
  if (program.stages()->size() == 0 || program.stages()->size() > kMaxStages)
    return invalid("its program has " + std::to_string(program.stages()->size()) + " stages");
  bool head = false, draft = false;
  for (const artifact::Stage* entry : *program.stages()) {
    Stage stage;
    stage.head = entry->head();
    stage.stream = entry->stream();
    stage.draft = entry->draft();
    stage.name = entry->name() ? entry->name()->str() : "stage " + std::to_string(out.size());
    if (draft && !stage.draft)
      return invalid("stage " + quote(stage.name) + " stands behind the draft");
    if (head && !stage.head && draft == stage.draft)
      return invalid("stage " + quote(stage.name) + " stands behind the head");
    head = stage.head;
    draft = stage.draft;
    for (const artifact::Call* call : *entry->calls())
      CORTIQ_RETURN_IF_ERROR(
          resolve_call(*call, resolver, facts, skills, resolved, stage).with_prefix("stage " + quote(stage.name)));
    if (stage.calls.empty() && stage.points.empty())
      return invalid("stage " + quote(stage.name) + " has no calls");
    out.push_back(std::move(stage));
  }
  return {};
}

using Extents = std::map<const uint8_t*, uint64_t>; ///< bytes, by where they begin

/// Weights that only a GPU reads, once, when they are copied to it: no budget of the host holds them.
Extents device_weights(const LoadedArtifact& artifact) {
  Extents out;
  const std::vector<WeightRef>& weights = artifact.resolver.weights;
  const auto add = [&](uint32_t index) {
    if (index < weights.size())
      out[weights[index].bytes.data()] = weights[index].bytes.size();
  };
  for (uint32_t i = 0; i < weights.size(); ++i)
    if (weights[i].layout == formats::LayoutId::kPlanes)
      add(i);
  const artifact::GpuProgram* gpu = artifact.program_table->gpu();
  if (gpu && gpu->bank())
    for (const artifact::GpuBankLayer* layer : *gpu->bank()->layers())
      for (const auto* list : {layer->gate(), layer->up(), layer->down()})
        for (const uint32_t index : *list)
          add(index);
  return out;
}

/// Asks for the weights that are not experts, nor `others`, at once and exactly: the system's read-ahead behind each of
/// them would fill the page cache with experts.
void read_all_but(std::span<const uint8_t> section, const std::vector<ExpertBankRef>& banks, const Extents& others) {
  Extents experts = others;
  for (const ExpertBankRef& bank : banks)
    for (const std::span<const uint8_t> expert : bank.experts)
      experts[expert.data()] = expert.size();
  madvise(const_cast<uint8_t*>(section.data()), section.size(), MADV_RANDOM);
  auto ask = [](const uint8_t* begin, const uint8_t* end) {
    // From the page of the first byte on; what shares the last page with an expert comes when it is touched.
    const auto page = reinterpret_cast<uintptr_t>(begin) / kReadAlignment * kReadAlignment;
    if (begin < end)
      madvise(reinterpret_cast<void*>(page), reinterpret_cast<uintptr_t>(end) - page, MADV_WILLNEED);
  };
  const uint8_t* at = section.data();
  for (const auto& [begin, bytes] : experts) {
    ask(at, begin);
    at = begin + bytes + formats::kLayoutTailPadding;
  }
  ask(at, section.data() + section.size());
}

/// The hashes of the weights, copied: they are for when the file that holds them was changed.
WeightHashes weight_hashes(const LoadedArtifact& artifact, bool always) {
  const std::span<const uint8_t> section = artifact.file.section(ArtifactSection::kWeights);
  const auto* leaves = artifact.manifest->weights_leaves();
  return {static_cast<uint64_t>(section.data() - artifact.file.file().data()), section.size(),
          leaves ? std::vector<uint8_t>(leaves->begin(), leaves->end()) : std::vector<uint8_t>(), always};
}

/// Takes the experts out of the mapping, where a budget was set.
Status divide_memory(LoadedArtifact& artifact, const std::string& path, const ArtifactLoadOptions& options,
                     const ProgramFacts& facts) {
  if (options.memory == 0)
    return {};
  const Extents on_device = device_weights(artifact);
  uint64_t weights = 0;
  for (const artifact::Weight* weight : *artifact.manifest->weights())
    weights += weight->bytes();
  for (const auto& [begin, bytes] : on_device)
    weights -= std::min(weights, bytes);
  if (!facts.expert_banks.empty()) {
    if (!artifact.manifest->weights_embedded())
      return unsupported("--memory reads experts from the artifact, and this one has no weights");
    const uint8_t* base = artifact.file.file().data();
    std::vector<ExpertMatrix> matrices;
    std::set<uint64_t> counted;
    for (const ExpertBankRef& bank : facts.expert_banks) {
      weights += bank.mapped_bytes;
      *bank.number = static_cast<uint32_t>(matrices.size());
      ExpertMatrix& matrix = matrices.emplace_back(ExpertMatrix{bank.layer, {}});
      for (const std::span<const uint8_t> expert : bank.experts) {
        const uint64_t offset = static_cast<uint64_t>(expert.data() - base);
        matrix.experts.push_back({offset, expert.size()});
        if (counted.insert(offset).second && !on_device.contains(expert.data()))
          weights -= expert.size();
        // Checks may have read them.
        formats::release_pages(expert);
      }
    }
    read_all_but(artifact.file.section(ArtifactSection::kWeights), facts.expert_banks, on_device);
    CORTIQ_ASSIGN_OR_RETURN(artifact.experts, ExpertStore::make(std::move(matrices)));
    CORTIQ_ASSIGN_OR_RETURN(std::unique_ptr<UnitReader> reader,
                            open_unit_reader(path, artifact.file.file().first(kReadAlignment),
                                             weight_hashes(artifact, options.require_key.has_value()),
                                             [store = artifact.experts.get()](uint32_t unit, const Status& status) {
                                               store->complete(unit, status);
                                             }));
    artifact.experts->attach(std::move(reader));
    add_router_lookahead(facts.routers, artifact.program.stages);
  }
  artifact.memory = std::make_unique<MemoryBudget>(options.memory, weights, artifact.experts.get());
  return {};
}

Status resolve_program(LoadedArtifact& artifact, const std::string& path, const ArtifactLoadOptions& options) {
  const artifact::Manifest& manifest = *artifact.manifest;
  const artifact::Program& program = *artifact.program_table;
  if (manifest.max_batch() == 0 || manifest.max_batch() > kMaxBatch || manifest.max_context() == 0 ||
      manifest.max_context() > kMaxContext || manifest.vocab() == 0)
    return invalid("its manifest has an impossible batch, context or vocabulary");
  CORTIQ_ASSIGN_OR_RETURN(artifact.overlay, read_overlay_catalog(manifest));
  Resolver& resolver = artifact.resolver;
  resolver.program = &program;
  resolver.max_batch = manifest.max_batch();
  ProgramFacts& facts = artifact.facts;
  CORTIQ_RETURN_IF_ERROR(place_weights(artifact, resolver.weights, options));
  CORTIQ_RETURN_IF_ERROR(check_kernels(artifact, resolver.kernels));
  CORTIQ_RETURN_IF_ERROR(check_buffers(program, resolver.max_batch, resolver.slots));
  CORTIQ_RETURN_IF_ERROR(check_tables(program, resolver.max_batch, facts));
  ResolvedProgram& out = artifact.program;
  std::vector<uint32_t> uses(resolver.slots.size());
  resolver.uses = &uses;
  const Status resolved = resolve_stages(program, resolver, facts, artifact.overlay.skills.size(), out);
  resolver.uses = nullptr;
  CORTIQ_RETURN_IF_ERROR(resolved);
  join_expert_stages(out.stages, resolver.max_batch);
  join_gate_stages(out.stages, resolver.max_batch, uses);
  CORTIQ_ASSIGN_OR_RETURN(out.logits, resolver.f32_slot(program.logits(), manifest.vocab(), "logits"));
  if (program.draft_logits() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(out.draft_logits,
                            resolver.f32_slot(program.draft_logits(), manifest.vocab(), "draft logits"));
    if (!out.stages.back().draft)
      return invalid("its program names draft logits, but no stage makes them");
  }
  CORTIQ_RETURN_IF_ERROR(divide_memory(artifact, path, options, facts));
  out.input = resolver.slots[0];
  if (resolver.kind(0) != artifact::BufferKind::F32)
    out.input.present = false;
  out.kv_layers = facts.kv_layers;
  out.rope_tables = facts.rope_tables;
  out.states = facts.states;
  out.taps = facts.taps;
  // A vocabulary may go on where the embedding ends.
  out.embedding_rows = facts.embedding_rows == 0 ? 0 : std::max<uint64_t>(facts.embedding_rows, manifest.vocab());
  out.max_batch = resolver.max_batch;
  out.arena_bytes = program.arena_bytes_per_token() * resolver.max_batch + tile_slack(resolver);
  out.half_products = std::any_of(resolver.kernels.begin(), resolver.kernels.end(), [](const KernelRef& kernel) {
    return kernel.entry->act() == artifact::BufferKind::Q8Bf16Act;
  });
  number_calls(out);
  artifact.hidden = find_hidden_rows(program, resolver, out);
  return {};
}

/// Says which of the targets is loaded.
StatusOr<TargetChoice> take_target(const LoadedArtifact& artifact, const ArtifactLoadOptions& options) {
  if (!options.check_features && options.target.empty())
    return TargetChoice{};
  TargetMachine machine = this_machine();
  if (!options.check_features)
    machine.runs_all = true;
  StatusOr<TargetChoice> choice = choose_target(artifact.targets, options.target, machine);
  if (choice.ok() || !options.target.empty())
    return choice;
  const flatbuffers::String* source = artifact.manifest->source_name();
  return unsupported(choice.status().message() + "; compile it for this machine: cortiq-compile " +
                     quote(source ? source->str() : "MODEL") + " --target " +
                     std::string(best_target(read_cpu_state())) + " -o OUT.cqa");
}

Status load_into(LoadedArtifact& artifact, const std::string& path, const ArtifactLoadOptions& options) {
  CORTIQ_ASSIGN_OR_RETURN(artifact.manifest, verified_root<artifact::Manifest>(
                                                 artifact.file.section(ArtifactSection::kManifest), "manifest"));
  CORTIQ_ASSIGN_OR_RETURN(artifact.targets,
                          read_targets(*artifact.manifest, artifact.file.section(ArtifactSection::kProgram),
                                       artifact.file.header().machine));
  CORTIQ_ASSIGN_OR_RETURN(artifact.taken, take_target(artifact, options));
  CORTIQ_ASSIGN_OR_RETURN(artifact.program_table, read_program(artifact.targets[artifact.taken.index]));
  if (options.resolve)
    return resolve_program(artifact, path, options);
  if (options.verify_weights && artifact.manifest->weights_embedded())
    return check_weight_hashes(*artifact.manifest, artifact.file.section(ArtifactSection::kWeights), options);
  return {};
}

} // namespace

StatusOr<std::unique_ptr<LoadedArtifact>> load_artifact(const std::string& path, const ArtifactLoadOptions& options) {
  CORTIQ_ASSIGN_OR_RETURN(MappedArtifact file, MappedArtifact::open(path, options.require_key.has_value()));
  if (options.check_features)
    if (Status status = file.check_machine(); !status.ok())
      return status.with_prefix(quote(path));
  ArtifactLoadOptions how = options;
  if (options.require_key) {
    if (Status status = require_signature(file, path, *options.require_key); !status.ok())
      return status.with_prefix(quote(path));
    how.verify_weights = true;
  }
  auto out = std::make_unique<LoadedArtifact>(LoadedArtifact{.file = std::move(file)});
  if (Status status = load_into(*out, path, how); !status.ok())
    return status.with_prefix(quote(path));
  return out;
}

Status check_artifact(const std::string& path, ArtifactLoadOptions options) {
  std::vector<std::string> names = {options.target};
  for (size_t i = 0; i < names.size(); ++i) {
    options.target = names[i];
    CORTIQ_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedArtifact> artifact, load_artifact(path, options));
    // The first one loaded names the others; the weights are the same for all.
    for (size_t other = 0; i == 0 && other < artifact->targets.size(); ++other)
      if (other != artifact->taken.index)
        names.push_back(artifact->targets[other].name);
    options.verify_weights = false;
  }
  return {};
}

FilledWeights::FilledWeights(uint64_t bytes, const Placement& placement) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == 0 || address == MAP_FAILED)
    return;
  base_ = static_cast<uint8_t*>(address);
  bytes_ = bytes;
  place(base_, bytes_, placement);
}
FilledWeights::FilledWeights(FilledWeights&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
FilledWeights& FilledWeights::operator=(FilledWeights&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
FilledWeights::~FilledWeights() {
  if (base_)
    munmap(base_, bytes_);
}
void FilledWeights::protect() {
  if (base_)
    mprotect(base_, bytes_, PROT_READ);
}

} // namespace cortiq::runtime
