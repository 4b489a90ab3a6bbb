#include "dialects/CMF/Interp/Interpreter.h"

#include "dialects/CMF/IR/DraftSection.h"
#include "dialects/CMF/IR/OverlayCatalog.h"
#include "dialects/CMF/Interp/OpTable.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace cortiq::cmf {

struct Interpreter::State {
  struct Step {
    Operation* op;
    OpReference reference;
    std::vector<Value> dead; ///< operands that nothing reads after this step
  };

  State(WeightSource& weights, uint64_t cacheBytes) : weights(weights, cacheBytes) {}

  std::vector<Step> steps;
  size_t lastState = 0;   ///< step after which tokens no longer meet; the step count when there is none
  bool recurrent = false; ///< some state cannot go back
  Value ids, logits;
  uint64_t vocab = 0, trainedContext = 0, position = 0;
  WeightCache weights;
  SequenceMemory memory;
  std::vector<uint32_t> held; ///< the sequence's tokens, kept where a state cannot go back
  bool stale = false;         ///< the memory is not that of `position`, but empty
  OverlayView overlay;
  ResidualTaps taps;
  Array result;

  Status plan(func::FuncOp forward);
  StatusOr<Array> run(std::span<const uint32_t> tokens, bool allLogits);
  void truncate(uint64_t length);
  Status catchUp();
};

Interpreter::Interpreter(std::unique_ptr<State> state) : state_(std::move(state)) {}
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter& Interpreter::operator=(Interpreter&&) noexcept = default;
Interpreter::~Interpreter() = default;

uint64_t Interpreter::vocab() const {
  return state_->vocab;
}
uint64_t Interpreter::trainedContext() const {
  return state_->trainedContext;
}
uint64_t Interpreter::position() const {
  return state_->position;
}

Status Interpreter::State::plan(func::FuncOp forward) {
  Block& body = forward.getBody().front();
  ids = body.getArgument(0);
  // Guesses change no token: the reference makes none.
  const DraftSection section = findDraftSection(forward);
  for (Operation& op : body.without_terminator()) {
    if (isa<WeightOp, OverlayOp>(op) || section.draft.contains(&op))
      continue;
    const OpReference reference = findReference(&op);
    if (!reference)
      return unsupported("operation '" + op.getName().getStringRef().str() + "' has no reference");
    for (Value operand : op.getOperands())
      if (isa<WeightType>(operand.getType()) && !isa_and_nonnull<WeightOp, OverlayOp>(operand.getDefiningOp()))
        return unsupported("operation '" + op.getName().getStringRef().str() +
                           "' reads a weight that no cmf.weight names");
    steps.push_back({&op, reference, {}});
  }
  logits = body.getTerminator()->getOperand(0);
  // A value dies with the last step that reads it.
  llvm::DenseMap<Value, size_t> lastRead;
  lastState = steps.size();
  for (size_t i = 0; i < steps.size(); ++i) {
    for (Value operand : steps[i].op->getOperands())
      lastRead[operand] = i;
    if (!isMemoryEffectFree(steps[i].op))
      lastState = i;
    auto attention = dyn_cast<AttentionOp>(steps[i].op);
    recurrent = recurrent || recurrentState(steps[i].op) || (attention && attention.getRing());
  }
  for (auto [value, step] : lastRead)
    if (value != logits)
      steps[step].dead.push_back(value);
  return {};
}

StatusOr<Array> Interpreter::State::run(std::span<const uint32_t> tokens, bool allLogits) {
  Frame frame(weights, memory, position, overlay, taps);
  frame.ids.assign(tokens.begin(), tokens.end());
  for (size_t i = 0; i < steps.size(); ++i) {
    CORTIQ_RETURN_IF_ERROR(steps[i].reference(steps[i].op, frame));
    applyMask(steps[i].op, frame);
    for (Value value : steps[i].dead)
      frame.drop(value);
    // Only operations with a state let tokens meet: behind the last one the rows of all but the asked-for token are
    // idle work.
    if (i == lastState && !allLogits)
      frame.keepLastToken();
  }
  Array out = frame.value(logits);
  if (!allLogits && out.rows > 1) {
    out.data.erase(out.data.begin(), out.data.end() - out.cols);
    out.rows = 1;
  }
  return out;
}

void Interpreter::State::truncate(uint64_t length) {
  position = length;
  if (recurrent) {
    held.resize(length);
    memory = {};
    stale = length != 0;
    return;
  }
  for (auto& [layer, cache] : memory.caches) {
    cache.keys.resize(std::min<size_t>(cache.keys.size(), length));
    cache.values.resize(std::min<size_t>(cache.values.size(), length));
  }
}

// A recurrent state is reached from the beginning only: what was kept runs again.
Status Interpreter::State::catchUp() {
  if (!stale)
    return {};
  const uint64_t target = position;
  position = 0;
  const Status status = run(held, /*allLogits=*/false).status();
  position = target;
  if (!status.ok())
    memory = {};
  stale = !status.ok();
  return status;
}

StatusOr<Interpreter> Interpreter::create(ModuleOp module, WeightSource& weights, InterpreterOptions options) {
  auto forward = module.lookupSymbol<func::FuncOp>(kForwardName);
  auto model = module->getAttrOfType<DictionaryAttr>(kModelAttr);
  if (!forward || !model || !forward.getBody().hasOneBlock() || forward.getNumArguments() == 0 ||
      forward.getNumArguments() > 2 || forward.getFunctionType().getNumResults() != forward.getNumArguments())
    return invalid("the module is no model: it needs 'cmf.model' and a function '@forward' of one argument and result, "
                   "or of two");
  auto state = std::make_unique<State>(weights, options.cacheBytes);
  CORTIQ_RETURN_IF_ERROR(state->plan(forward));
  state->vocab = cast<RankedTensorType>(forward.getFunctionType().getResult(0)).getDimSize(1);
  state->overlay.catalog = overlayCatalog(module);
  state->overlay.selection.mask = state->overlay.catalog.default_mask();
  if (auto context = model.getAs<IntegerAttr>("trained_context"))
    state->trainedContext = context.getInt();
  return Interpreter(std::move(state));
}

StatusOr<std::span<const float>> Interpreter::forward(std::span<const uint32_t> tokens, bool allLogits) {
  State& state = *state_;
  if (tokens.empty())
    return invalid("there is no token to read");
  for (uint32_t id : tokens)
    if (id >= state.vocab)
      return invalid("token " + std::to_string(id) + " is beyond the vocabulary of " + std::to_string(state.vocab));
  CORTIQ_RETURN_IF_ERROR(state.catchUp());
  const uint64_t before = state.position;
  StatusOr<Array> logits = state.run(tokens, allLogits);
  if (!logits.ok()) {
    state.truncate(before);
    return logits.status();
  }
  state.result = *std::move(logits);
  state.position = before + tokens.size();
  if (state.recurrent)
    state.held.insert(state.held.end(), tokens.begin(), tokens.end());
  return std::span<const float>(state.result.data);
}

const formats::OverlayCatalog& Interpreter::overlay() const {
  return state_->overlay.catalog;
}

void Interpreter::setOverlay(const formats::OverlaySelection& selection) {
  state_->overlay.selection = selection;
}

StatusOr<formats::ResidualMeans> Interpreter::residualMeans(std::span<const uint32_t> tokens) {
  State& state = *state_;
  reset();
  formats::OverlaySelection kept =
      std::exchange(state.overlay.selection, formats::OverlaySelection{{}, state.overlay.catalog.fixed_mask()});
  state.taps = {{}, true};
  const Status status = forward(tokens, false).status();
  ResidualTaps taps = std::exchange(state.taps, {});
  state.overlay.selection = std::move(kept);
  reset();
  CORTIQ_RETURN_IF_ERROR(status);
  formats::ResidualMeans means;
  for (const auto& [layer, sums] : taps.sums)
    for (double sum : sums)
      means[layer].push_back(static_cast<float>(sum / static_cast<double>(tokens.size())));
  return means;
}

void Interpreter::rewind(uint64_t position) {
  if (position < state_->position)
    state_->truncate(position);
}

} // namespace cortiq::cmf
