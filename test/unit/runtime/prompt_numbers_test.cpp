// Prompts with kernels of their own: which numbers a token gets depends on whether it is a prompt's or was generated,
// never on how many come at once or on who else is in the step. The models have plain kernels that read 8-bit codes and
// one for prompts that reads bf16, so that a token that gets the wrong ones shows.

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <random>

#include "formats/overlay/selection.h"
#include "runtime/batch/batch_engine.h"
#include "runtime/generate/generate.h"
#include "runtime/session/saved_session.h"
#include "test/unit/runtime/expert_model.h"
#include "test/unit/runtime/recurrent_model.h"
#include "test/unit/runtime/session_fixture.h"
#include "test/unit/runtime/tiny_model.h"

namespace cortiq::runtime {
namespace {

constexpr uint32_t kWords = 28; ///< ids that texts have
constexpr size_t kPrompt = 23;  ///< tokens of a text that are its prompt

struct Kind {
  const char* name;
  std::function<Status(const std::string&, test::Numbers)> write;
};

const Kind kKinds[] = {
    {"Tiny",
     [](const std::string& path, test::Numbers numbers) {
       test::TinyModel model;
       model.numbers = numbers;
       return model.write(path);
     }},
    {"Experts", test::write_expert_model},
    {"Recurrent", [](const std::string& path,
                     test::Numbers numbers) { return test::write_recurrent_model(path, 0, false, numbers); }},
    {"RecurrentRing", [](const std::string& path,
                         test::Numbers numbers) { return test::write_recurrent_model(path, 70, true, numbers); }},
};

class PromptNumbers : public test::SessionFixture, public ::testing::WithParamInterface<std::tuple<size_t, unsigned>> {
protected:
  PromptNumbers() : SessionFixture(kWords) {}

  void SetUp() override {
    const Kind& kind = kKinds[std::get<0>(GetParam())];
    half_ = load(folder_.file("half.cqa"), kind.write(folder_.file("half.cqa"), test::Numbers::kHalfPrompts));
    same_ = load(folder_.file("same.cqa"), kind.write(folder_.file("same.cqa"), test::Numbers::kCodes));
  }
  std::unique_ptr<Session> session(const std::shared_ptr<const Model>& model) const {
    return open(model, std::get<1>(GetParam()), KvType::kF32);
  }

  /// Logits of every token, each generated.
  static std::vector<float> append(Session& session, std::span<const uint32_t> tokens) {
    std::vector<float> out;
    for (const uint32_t token : tokens) {
      const auto logits = session.append(token);
      EXPECT_TRUE(logits.ok()) << logits.status().message();
      if (logits.ok())
        out.insert(out.end(), logits->begin(), logits->end());
    }
    return out;
  }
  /// The same of a prompt and what is generated behind it.
  std::vector<float> alone(std::span<const uint32_t> text, size_t prompt) const {
    const auto one = session(half_);
    std::vector<float> out = run(*one, text.first(prompt));
    const std::vector<float> rest = append(*one, text.subspan(prompt));
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
  }

  std::shared_ptr<const Model> half_, same_; ///< with a kernel for prompts, and without
};

TEST_P(PromptNumbers, APromptHasTheSameBitsHoweverItIsCut) {
  const std::vector<uint32_t> prompt = text(80);
  const std::vector<float> whole = run(*session(half_), prompt);
  for (const size_t chunk : {1, 2, 5, 7, 64})
    expect_same(run(*session(half_), prompt, chunk), whole, "in pieces of " + std::to_string(chunk));
  // The kernels can be told apart.
  EXPECT_NE(run(*session(same_), prompt), whole);
}

TEST_P(PromptNumbers, GeneratedTokensHaveTheNumbersOfAModelWithoutOthers) {
  const std::vector<uint32_t> tokens = text(40);
  const auto half = session(half_);
  const std::vector<float> want = run(*session(same_), tokens);
  expect_same(append(*half, tokens), want, "generated");
  half->reset();
  std::vector<float> pairs;
  for (size_t i = 0; i < tokens.size(); i += 2) {
    const auto rows = half->verify(tokens[i], tokens[i + 1]);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    pairs.insert(pairs.end(), rows->begin(), rows->end());
  }
  expect_same(pairs, want, "generated and verified");
}

TEST_P(PromptNumbers, WhatIsTakenBackAndRunAgainIsAsItWas) {
  const std::vector<uint32_t> tokens = text(kPrompt + 20);
  const std::vector<float> want = alone(tokens, kPrompt);
  const auto one = session(half_);
  run(*one, std::span(tokens).first(kPrompt), 7);
  append(*one, std::span(tokens).subspan(kPrompt));
  const uint64_t vocab = one->vocab();
  for (const size_t back : {kPrompt + 19, kPrompt + 5, kPrompt}) {
    one->rewind(back);
    const auto logits = one->append(tokens[back]);
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    expect_same(*logits, std::span(want).subspan(back * vocab, vocab), "back to " + std::to_string(back));
  }
  one->rewind(kPrompt - 3);
  expect_same(run(*one, std::span(tokens).subspan(kPrompt - 3, 3)),
              std::span(want).subspan((kPrompt - 3) * vocab, 3 * vocab), "back into the prompt");
}

TEST_P(PromptNumbers, ASavedSessionKnowsWhenceItsTokensCame) {
  const std::vector<uint32_t> tokens = text(kPrompt + 20);
  const std::vector<float> want = alone(tokens, kPrompt);
  const auto one = session(half_), other = session(half_);
  const uint64_t vocab = one->vocab();
  run(*one, std::span(tokens).first(kPrompt));
  append(*one, std::span(tokens).subspan(kPrompt, 19));
  for (const bool generated : {true, false}) {
    SavedSequence sequence{tokens};
    sequence.last_generated = generated;
    ASSERT_TRUE(save_session(folder_.file("s"), *one, sequence).ok());
    const auto saved = SavedSession::open(folder_.file("s"));
    ASSERT_TRUE(saved.ok()) << saved.status().message();
    EXPECT_EQ(saved->sequence().last_generated, generated);
    ASSERT_TRUE(saved->restore(*other).ok());
    other->rewind(kPrompt + 7);
    expect_same(append(*other, std::span(tokens).subspan(kPrompt + 7)), std::span(want).subspan((kPrompt + 7) * vocab),
                "behind a saved session");
  }
}

TEST_P(PromptNumbers, AGenerationIsAPromptAndWhatIsAppended) {
  const std::vector<uint32_t> prompt = text(kPrompt);
  const auto one = session(half_);
  sampling::Sampler sampler(sampling::SamplingOptions::greedy(), one->vocab());
  std::vector<float> seen;
  GenerateOptions options;
  options.max_tokens = 12;
  options.sink_takes_logits = true;
  const auto out = generate(*one, sampler, prompt, options, [&](uint32_t, std::span<const float> logits) {
    seen.insert(seen.end(), logits.begin(), logits.end());
    return Status();
  });
  ASSERT_TRUE(out.ok()) << out.status().message();
  std::vector<uint32_t> whole = prompt;
  whole.insert(whole.end(), out->tokens.begin(), out->tokens.end() - 1);
  const std::vector<float> want = alone(whole, kPrompt);
  expect_same(seen, std::span(want).subspan((kPrompt - 1) * one->vocab()), "logits of the choices");

  // The last token was chosen and has not run: who goes on with it says so.
  seen.clear();
  options.continues = true;
  options.max_tokens = 1;
  const auto more =
      generate(*one, sampler, std::span(out->tokens).last(1), options, [&](uint32_t, std::span<const float> logits) {
        seen.assign(logits.begin(), logits.end());
        return Status();
      });
  ASSERT_TRUE(more.ok()) << more.status().message();
  whole.push_back(out->tokens.back());
  const std::vector<float> longer = alone(whole, kPrompt);
  expect_same(seen, std::span(longer).last(one->vocab()), "logits behind the last token");
}

// Sequences read their prompts in pieces, go on with single tokens or, as one that gave up its pages, several, and meet
// in steps of all kinds. Some of their prompts begin alike.
TEST_P(PromptNumbers, StepsOfManyGiveTheBitsOfOne) {
  struct Running {
    BatchEngine::Sequence number;
    uint64_t text;
  };
  std::mt19937 random(5);
  std::vector<std::vector<uint32_t>> texts;
  std::vector<std::vector<float>> want;
  for (uint32_t i = 0; i < 8; ++i) {
    texts.push_back(text(kPrompt + i % 4 * 20, i % 2));
    std::vector<uint32_t> answer = text(15, i + 3);
    answer.front() = i; // no answer begins as another prompt goes on
    texts.back().insert(texts.back().end(), answer.begin(), answer.end());
    want.push_back(alone(texts.back(), texts.back().size() - 15));
  }
  auto made = BatchEngine::create(half_, {.threads = std::get<1>(GetParam()), .kv = KvType::kF32, .sequences = 5});
  ASSERT_TRUE(made.ok()) << made.status().message();
  BatchEngine& batch = **made;
  const uint64_t vocab = batch.vocab();
  std::vector<Running> running;
  uint64_t compared = 0, mixed = 0;
  for (int round = 0; round < 400; ++round) {
    if (running.size() < 5 && random() % 2 == 0) {
      const uint64_t number = random() % texts.size();
      const auto prompt = std::span(texts[number]).first(texts[number].size() - 15);
      const auto opened = batch.open({{}, half_->overlay().default_mask()}, prompt);
      ASSERT_TRUE(opened.ok()) << opened.status().message();
      running.push_back({*opened, number});
    }
    std::shuffle(running.begin(), running.end(), random);
    std::vector<BatchEngine::Part> parts;
    std::vector<uint64_t> of;
    uint64_t room = batch.max_batch();
    for (const Running& one : running) {
      const std::span<const uint32_t> whole = texts[one.text];
      const uint64_t position = batch.position(one.number), prompt = whole.size() - 15;
      const bool generated = position >= prompt;
      const uint64_t left = (generated ? whole.size() : prompt) - position;
      const uint64_t count = std::min({left, room, random() % 3 == 0 ? 1 + random() % 6 : uint64_t{1}});
      if (count == 0)
        continue;
      parts.push_back({.sequence = one.number,
                       .tokens = whole.subspan(position, count),
                       .logits = random() % 4 != 0,
                       .generated = generated});
      of.push_back(one.text);
      room -= count;
    }
    if (parts.empty())
      continue;
    const auto results = batch.step(parts);
    ASSERT_TRUE(results.ok()) << results.status().message();
    const auto is_generated = [](const BatchEngine::Part& part) { return part.generated; };
    mixed += std::ranges::any_of(parts, is_generated) && !std::ranges::all_of(parts, is_generated);
    for (size_t i = 0; i < parts.size(); ++i) {
      ASSERT_TRUE((*results)[i].status.ok()) << (*results)[i].status.message();
      if (!parts[i].logits)
        continue;
      const uint64_t row = batch.position(parts[i].sequence) - 1;
      expect_same((*results)[i].logits, std::span(want[of[i]]).subspan(row * vocab, vocab),
                  "text " + std::to_string(of[i]) + " behind " + std::to_string(row + 1) + " tokens");
      ++compared;
    }
    std::erase_if(running, [&](const Running& one) {
      const bool over = batch.position(one.number) == texts[one.text].size();
      if (over)
        batch.close(one.number);
      return over;
    });
  }
  EXPECT_GT(compared, 300u);
  EXPECT_GT(mixed, 50u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PromptNumbers,
                         ::testing::Combine(::testing::Range<size_t>(0, std::size(kKinds)), ::testing::Values(1u, 3u)),
                         [](const auto& info) {
                           return std::string(kKinds[std::get<0>(info.param)].name) + "Threads" +
                                  std::to_string(std::get<1>(info.param));
                         });

} // namespace
} // namespace cortiq::runtime
