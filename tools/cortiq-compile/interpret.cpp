#include "tools/cortiq-compile/interpret.h"

#include <chrono>
#include <cstdio>

#include "compiler/frontend/LoadModel.h"
#include "dialects/CMF/Interp/Interpreter.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/cli/run.h"
#include "runtime/cli/run_options.h"
#include "runtime/text/text_section.h"
#include "runtime/text/text_source.h"
#include "tools/cortiq-compile/signatures.h"

namespace cortiq::tools {
namespace {

namespace text = runtime::text;

/// The interpreter as an engine, with a limit to its context.
class ReferenceEngine : public runtime::Engine {
public:
  ReferenceEngine(cmf::Interpreter interpreter, uint64_t max_context)
      : interpreter_(std::move(interpreter)),
        max_context_(max_context == 0 ? interpreter_.trainedContext()
                                      : std::min(max_context, interpreter_.trainedContext())) {}

  uint64_t vocab() const override { return interpreter_.vocab(); }
  uint64_t max_context() const override { return max_context_; }
  uint64_t position() const override { return interpreter_.position(); }

  StatusOr<std::span<const float>> forward(std::span<const uint32_t> tokens, bool all_logits) override {
    if (tokens.size() > max_context_ - position())
      return invalid("the context holds " + std::to_string(max_context_) + " tokens, of which " +
                     std::to_string(position()) + " are taken: there is no room for " + std::to_string(tokens.size()) +
                     " more");
    return interpreter_.forward(tokens, all_logits);
  }

  void rewind(uint64_t position) override { interpreter_.rewind(position); }

  const formats::OverlayCatalog& overlay() const override { return interpreter_.overlay(); }
  Status set_overlay(const formats::OverlaySelection& selection) override {
    interpreter_.setOverlay(selection);
    return {};
  }
  StatusOr<formats::ResidualMeans> residual_means(std::span<const uint32_t> tokens) override {
    if (tokens.size() > max_context_)
      return invalid("the context holds " + std::to_string(max_context_) + " tokens, not " +
                     std::to_string(tokens.size()));
    return interpreter_.residualMeans(tokens);
  }

private:
  cmf::Interpreter interpreter_;
  uint64_t max_context_;
};

Status add_text(const compiler::LoadedModel& model, const runtime::cli::RunOptions& options,
                runtime::cli::Loaded& loaded) {
  StatusOr<text::TextSource> source =
      model.cmf ? text::read_text_source(*model.cmf) : text::read_text_source(*model.gguf);
  if (!source.ok()) {
    // Ids in need no tokenizer; text does.
    return options.tokens ? Status() : source.status();
  }
  for (const std::string& sentence : source->warnings)
    std::fprintf(stderr, "cortiq-compile: note: %s\n", sentence.c_str());
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint8_t> section,
                          text::pack_text_section(source->tokenizer_json, source->config));
  CORTIQ_ASSIGN_OR_RETURN(text::TextModel opened, text::open_text_section(section));
  loaded.token_count = opened.tokenizer.vocab_size();
  loaded.text = std::move(opened);
  return {};
}

} // namespace

StatusOr<int> interpret(int argc, const char* const* argv) {
  runtime::cli::RunOptions options;
  const auto outcome = runtime::cli::parse_run_options(argc, argv, "cortiq-compile --interpret", options);
  if (!outcome.run)
    return outcome.exit;
  const auto start = std::chrono::steady_clock::now();
  mlir::MLIRContext context;
  CORTIQ_ASSIGN_OR_RETURN(
      compiler::LoadedModel model,
      compiler::loadModel(options.file, context,
                          {.maxContext = options.max_context, .vectorLadder = options.q4tp_ladder == "vector"}));
  for (const std::string& sentence : model.warnings)
    std::fprintf(stderr, "cortiq-compile: note: %s\n", sentence.c_str());
  CORTIQ_RETURN_IF_ERROR(check_signatures(model, options.file, options.require_key));
  if (options.verify && model.cmf)
    CORTIQ_RETURN_IF_ERROR(model.cmf->verify());
  CORTIQ_ASSIGN_OR_RETURN(cmf::Interpreter interpreter, cmf::Interpreter::create(*model.module, *model.weights));
  runtime::cli::Loaded loaded;
  CORTIQ_RETURN_IF_ERROR(add_text(model, options, loaded));
  auto engine = std::make_unique<ReferenceEngine>(std::move(interpreter), options.max_context);
  loaded.description = "the reference interpreter, context " + std::to_string(engine->max_context());
  loaded.engine = std::move(engine);
  loaded.load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CORTIQ_RETURN_IF_ERROR(runtime::cli::run(options, loaded));
  return 0;
}

} // namespace cortiq::tools
