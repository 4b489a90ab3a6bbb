#include "tools/cortiq-bench/batch_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "runtime/batch/batch_engine.h"
#include "runtime/session/session.h"

namespace cortiq::bench {
namespace {

using Json = nlohmann::ordered_json;
using runtime::BatchEngine;

// Tokens of a prompt that a step takes: of no round size, so that pieces end anywhere.
constexpr uint64_t kPiece = 13;
// Beginnings that the texts of several sequences have in common.
constexpr uint64_t kBeginnings = 3;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/// Of a row of logits, to compare without keeping it.
uint64_t digest(std::span<const float> row) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const float value : row) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash;
}

uint32_t likeliest(std::span<const float> row) {
  return static_cast<uint32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

/// A prompt, what a session of its own makes of it, and the digests of the logits behind the prompt and each token.
struct Text {
  std::vector<uint32_t> tokens;
  uint64_t prompt = 0;
  std::vector<uint64_t> digests;
};

class Bench {
public:
  Bench(const ModelBenchOptions& options, std::shared_ptr<const runtime::Model> model)
      : options_(options), model_(std::move(model)) {
    const runtime::ModelInfo& info = model_->info();
    ids_ = info.token_count != 0 ? std::min(info.token_count, info.vocab) : info.vocab;
    selection_ = {{}, model_->overlay().default_mask()};
  }

  StatusOr<Json> run(uint64_t sequences, unsigned threads) {
    CORTIQ_RETURN_IF_ERROR(make_texts(sequences, threads));
    runtime::BatchOptions how;
    how.threads = threads;
    how.sequences = sequences;
    how.placement = runtime::placement_of(options_.pages, options_.numa);
    if (!options_.kv.empty())
      how.kv = runtime::parse_kv_type(options_.kv);
    CORTIQ_ASSIGN_OR_RETURN(const auto engine, BatchEngine::create(model_, how));
    CORTIQ_RETURN_IF_ERROR(compare(*engine, sequences));
    return time(*engine, sequences);
  }

private:
  Status make_texts(uint64_t count, unsigned threads) {
    runtime::SessionOptions how;
    how.threads = threads;
    if (!options_.kv.empty())
      how.kv = runtime::parse_kv_type(options_.kv);
    CORTIQ_ASSIGN_OR_RETURN(const auto session, runtime::Session::create(model_, how));
    for (uint64_t n = texts_.size(); n < count; ++n) {
      Text text;
      // Lengths differ, so that sequences join, answer and leave at different times.
      text.prompt = std::max<uint64_t>(1, options_.prefill - std::min(options_.prefill, n % 7 * options_.prefill / 16));
      const uint64_t answer = std::max<uint64_t>(1, options_.decode - std::min(options_.decode, n % 5 * 2));
      if (text.prompt + answer > session->max_context())
        return invalid(std::to_string(text.prompt + answer) + " tokens do not fit the context of " +
                       std::to_string(session->max_context()));
      for (uint64_t i = 0; i < text.prompt; ++i) {
        const uint64_t seed = i < text.prompt / 2 ? n % kBeginnings : n;
        text.tokens.push_back(static_cast<uint32_t>((i * 7919 + seed * 104729 + 17) % ids_));
      }
      session->reset();
      CORTIQ_ASSIGN_OR_RETURN(std::span<const float> logits, session->forward(text.tokens, false));
      for (uint64_t i = 0; i < answer; ++i) {
        text.digests.push_back(digest(logits));
        text.tokens.push_back(likeliest(logits));
        CORTIQ_ASSIGN_OR_RETURN(logits, session->append(text.tokens.back()));
      }
      text.digests.push_back(digest(logits));
      texts_.push_back(std::move(text));
    }
    return {};
  }

  struct Running {
    const Text* text;
    BatchEngine::Sequence sequence;
  };

  Status compare(BatchEngine& engine, uint64_t count) const {
    std::vector<Running> running;
    uint64_t joined = 0;
    // All of them twice: the second time beginnings are known.
    while (joined < 2 * count || !running.empty()) {
      for (int i = 0; i < 2 && joined < 2 * count && running.size() < count; ++i) {
        const Text& text = texts_[joined++ % count];
        CORTIQ_ASSIGN_OR_RETURN(const BatchEngine::Sequence sequence,
                                engine.open(selection_, std::span(text.tokens).first(text.prompt)));
        running.push_back({&text, sequence});
      }
      std::vector<BatchEngine::Part> parts;
      std::vector<Running> taken;
      uint64_t room = engine.max_batch();
      for (const Running& one : running) {
        const uint64_t position = engine.position(one.sequence);
        const uint64_t left = position < one.text->prompt ? one.text->prompt - position : 1;
        const uint64_t tokens = std::min({left, kPiece, room});
        if (tokens == 0)
          continue;
        parts.push_back({.sequence = one.sequence,
                         .tokens = std::span(one.text->tokens).subspan(position, tokens),
                         .logits = position + tokens >= one.text->prompt,
                         .generated = position >= one.text->prompt});
        taken.push_back(one);
        room -= tokens;
      }
      CORTIQ_ASSIGN_OR_RETURN(const auto results, engine.step(parts));
      for (size_t i = 0; i < parts.size(); ++i) {
        CORTIQ_RETURN_IF_ERROR(results[i].status);
        const uint64_t end = engine.position(parts[i].sequence);
        if (parts[i].logits && digest(results[i].logits) != taken[i].text->digests[end - taken[i].text->prompt])
          return internal_error("the logits of a sequence behind " + std::to_string(end) + " tokens, in a step of " +
                                std::to_string(parts.size()) + " sequences, are not those of a session of its own");
      }
      std::erase_if(running, [&](const Running& one) {
        const bool over = engine.position(one.sequence) == one.text->tokens.size();
        if (over)
          engine.close(one.sequence);
        return over;
      });
    }
    return {};
  }

  /// Of the fastest of the runs.
  StatusOr<Json> time(BatchEngine& engine, uint64_t count) const {
    std::vector<BatchEngine::Sequence> sequences;
    for (uint64_t n = 0; n < count; ++n) {
      const auto prompt = std::span(texts_[n].tokens).first(texts_[n].prompt);
      CORTIQ_ASSIGN_OR_RETURN(const BatchEngine::Sequence sequence, engine.open(selection_, prompt));
      while (engine.position(sequence) < prompt.size()) {
        const uint64_t position = engine.position(sequence);
        const BatchEngine::Part part{
            .sequence = sequence,
            .tokens = prompt.subspan(position, std::min(engine.max_batch(), prompt.size() - position)),
            .logits = false};
        CORTIQ_RETURN_IF_ERROR(engine.step({&part, 1}).status());
      }
      sequences.push_back(sequence);
    }
    double wall = 1e300, cpu = 1e300;
    const uint64_t least = std::max<uint64_t>(1, options_.decode);
    const uint64_t steps = std::min(least, engine.max_context() - options_.prefill) / options_.repeat;
    for (unsigned run = 0; run < options_.repeat && steps != 0; ++run) {
      const auto start = std::chrono::steady_clock::now();
      const double before = cpu_seconds();
      for (uint64_t i = 0; i < steps; ++i) {
        std::vector<uint32_t> ids(count);
        std::vector<BatchEngine::Part> parts;
        for (uint64_t n = 0; n < count; ++n) {
          ids[n] = static_cast<uint32_t>((i * 104729 + n * 31 + 3) % ids_);
          parts.push_back({.sequence = sequences[n], .tokens = {&ids[n], 1}, .generated = true});
        }
        CORTIQ_RETURN_IF_ERROR(engine.step(parts).status());
      }
      cpu = std::min(cpu, cpu_seconds() - before);
      wall = std::min(wall, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    for (const BatchEngine::Sequence sequence : sequences)
      engine.close(sequence);
    const double tokens = static_cast<double>(steps * count);
    return Json{{"sequences", count},
                {"threads", engine.threads()},
                {"equal_to_sessions", true},
                {"step_ms", steps != 0 ? wall * 1e3 / static_cast<double>(steps) : 0},
                {"tokens_per_second", steps != 0 ? tokens / wall : 0},
                {"tokens_per_cpu_second", steps != 0 && cpu > 0 ? tokens / cpu : 0}};
  }

  const ModelBenchOptions& options_;
  std::shared_ptr<const runtime::Model> model_;
  uint64_t ids_ = 0;
  formats::OverlaySelection selection_;
  std::vector<Text> texts_;
};

} // namespace

Status bench_batches(const ModelBenchOptions& options) {
  for (const std::string& file : options.files) {
    runtime::LoadOptions load;
    load.fill_seed = options.fill_seed;
    load.memory = options.memory;
    load.target = options.target;
    load.placement = runtime::placement_of(options.pages, options.numa);
    CORTIQ_ASSIGN_OR_RETURN(auto model, runtime::Model::load(file, load));
    Bench bench(options, model);
    Json rows = Json::array();
    for (const unsigned threads : options.threads)
      for (const unsigned sequences : options.sequences) {
        CORTIQ_ASSIGN_OR_RETURN(Json row, bench.run(sequences, threads));
        if (!options.json)
          std::printf("%s: %3u sequences, %u threads: as %u sessions alone, bit for bit; %8.2f ms a step, %9.1f "
                      "tokens/s, %9.1f tokens/CPU-s\n",
                      model->info().name.c_str(), sequences, row["threads"].get<unsigned>(), sequences,
                      row["step_ms"].get<double>(), row["tokens_per_second"].get<double>(),
                      row["tokens_per_cpu_second"].get<double>());
        rows.push_back(std::move(row));
      }
    if (options.json)
      std::printf("%s\n", Json{{"model", model->info().name}, {"batches", std::move(rows)}}.dump().c_str());
    std::fflush(stdout);
  }
  return {};
}

} // namespace cortiq::bench
