#include "runtime/cpu/limits.h"
#include "runtime/loader/load.h"
#include "runtime/overlay/overlay.h"
#include "runtime/session/session.h"

namespace cortiq::runtime {
namespace {

std::string text(const flatbuffers::String* string) {
  return string ? string->str() : std::string();
}

ModelInfo describe(const LoadedArtifact& artifact) {
  const artifact::Manifest& m = *artifact.manifest;
  ModelInfo info;
  info.architecture = text(m.architecture());
  info.name = text(m.model_name());
  info.compiler_version = text(m.compiler_version());
  const ArtifactTarget& taken = artifact.targets[artifact.taken.index];
  info.target = taken.name;
  info.features = taken.features;
  info.target_reason = artifact.taken.why;
  for (const ArtifactTarget& target : artifact.targets)
    info.targets.push_back(target.name);
  info.options = text(m.options());
  info.source_name = text(m.source_name());
  info.text_absent = text(m.text_absent());
  info.exact = m.numerics() == artifact::Numerics::Exact;
  info.kv_f16 = m.kv_f16();
  info.hidden = m.hidden();
  info.layers = m.layers();
  info.vocab = m.vocab();
  info.token_count = m.token_count();
  info.max_context = m.max_context();
  info.trained_context = m.trained_context();
  info.max_batch = m.max_batch();
  for (const artifact::Weight* weight : *m.weights())
    info.weight_bytes += weight->bytes();
  return info;
}

} // namespace

Model::~Model() = default;

StatusOr<std::shared_ptr<const Model>> Model::load(const std::string& path, const LoadOptions& options) {
  ArtifactLoadOptions load;
  load.verify_weights = options.verify_weights || options.require_key.has_value();
  load.require_key = options.require_key;
  load.fill_seed = options.fill_seed;
  load.memory = options.memory;
  load.target = options.target;
  load.placement = options.placement;
  if (load.verify_weights || options.fill_seed || options.placement.large_pages)
    load.threads = default_threads(read_cpu_limits());
  StatusOr<std::unique_ptr<LoadedArtifact>> artifact = load_artifact(path, load);
  if (!artifact.ok())
    return artifact.status();
  std::shared_ptr<Model> model(new Model());
  model->artifact_ = *std::move(artifact);
  model->info_ = describe(*model->artifact_);
  return std::shared_ptr<const Model>(std::move(model));
}

const formats::OverlayCatalog& Model::overlay() const {
  return artifact_->overlay;
}

StatusOr<std::shared_ptr<const OverlayState>> Model::overlay_state(const formats::OverlaySelection& selection) const {
  if (overlay().empty())
    return std::shared_ptr<const OverlayState>();
  std::lock_guard lock(states_mutex_);
  std::erase_if(states_, [](const auto& state) { return state.expired(); });
  for (const auto& kept : states_)
    if (auto state = kept.lock(); state && state->selection == selection)
      return state;
  CORTIQ_ASSIGN_OR_RETURN(std::shared_ptr<const OverlayState> state,
                          make_overlay_state(artifact_->program, artifact_->resolver, artifact_->facts, overlay(),
                                             selection, artifact_->memory.get()));
  states_.push_back(state);
  return state;
}

std::span<const uint8_t> Model::tokenizer() const {
  return artifact_->file.section(formats::ArtifactSection::kTokenizer);
}

} // namespace cortiq::runtime
