#include "runtime/batch/batch_engine.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "formats/overlay/selection.h"
#include "test/unit/runtime/recurrent_model.h"
#include "test/unit/runtime/temporary_folder.h"
#include "test/unit/runtime/tiny_model.h"
#include "test/unit/runtime/window_model.h"

namespace cortiq::runtime {
namespace {

using formats::OverlaySelection;
using ::testing::HasSubstr;

struct Kind {
  const char* name;
  uint32_t vocab; ///< ids that texts have
  std::function<Status(const std::string&)> write;
};

const Kind kKinds[] = {
    {"Tiny", test::TinyModel::kVocab, [](const std::string& path) { return test::TinyModel().write(path); }},
    {"Window", test::kWindowVocab, [](const std::string& path) { return test::write_window_model(path, true); }},
    {"Recurrent", test::kRecurrentVocab - 1, [](const std::string& path) { return test::write_recurrent_model(path); }},
    {"RecurrentRing", test::kRecurrentVocab - 1,
     [](const std::string& path) { return test::write_recurrent_model(path, 70, true); }},
};

std::shared_ptr<const Model> load(const std::string& path) {
  auto model = Model::load(path);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *model;
}

std::unique_ptr<BatchEngine> engine(const std::shared_ptr<const Model>& model, const BatchOptions& options) {
  auto made = BatchEngine::create(model, options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}

/// Logits of every position of texts, by sessions of their own.
class Alone {
public:
  Alone(std::shared_ptr<const Model> model, KvType kv) {
    auto made = Session::create(std::move(model), {.threads = 1, .kv = kv});
    EXPECT_TRUE(made.ok()) << made.status().message();
    session_ = *std::move(made);
  }
  /// Behind the first `count` tokens of `text`.
  std::span<const float> after(std::span<const uint32_t> text, uint64_t count, const OverlaySelection& selection) {
    const size_t skill = selection.shares.empty() ? 99 : selection.shares[0].skill;
    std::vector<float>& kept = kept_[{{text.begin(), text.end()}, skill}];
    if (kept.empty()) {
      EXPECT_TRUE(session_->set_overlay(selection).ok());
      session_->reset();
      const auto logits = session_->forward(text, true);
      EXPECT_TRUE(logits.ok()) << logits.status().message();
      kept.assign(logits->begin(), logits->end());
    }
    return std::span(kept).subspan((count - 1) * session_->vocab(), session_->vocab());
  }

private:
  std::unique_ptr<Session> session_;
  std::map<std::pair<std::vector<uint32_t>, size_t>, std::vector<float>> kept_;
};

/// Texts with few beginnings, so that pages are shared.
std::vector<uint32_t> some_text(std::mt19937& random, uint64_t count, uint32_t vocab) {
  const uint32_t seed = random() % 3, turn = 20 + random() % 100;
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < count; ++i)
    out.push_back((i * i * 5 + i * 3 + seed * 7 + (i >= turn ? turn : 0)) % vocab);
  return out;
}

OverlaySelection plain(const Model& model) {
  return {{}, model.overlay().default_mask()};
}

class Batch : public ::testing::TestWithParam<std::tuple<size_t, KvType, unsigned>> {
protected:
  void SetUp() override {
    kind_ = &kKinds[std::get<0>(GetParam())];
    const Status written = kind_->write(folder_.file("m.cqa"));
    ASSERT_TRUE(written.ok()) << written.message();
    model_ = load(folder_.file("m.cqa"));
  }
  KvType kv() const { return std::get<1>(GetParam()); }
  unsigned threads() const { return std::get<2>(GetParam()); }

  const Kind* kind_ = nullptr;
  test::TemporaryFolder folder_;
  std::shared_ptr<const Model> model_;
};

// Sequences join, take pieces of their texts in steps with others, leave and come back, while pages run short.
TEST_P(Batch, StepsOfManyGiveTheBitsOfOne) {
  struct Running {
    BatchEngine::Sequence number;
    std::vector<uint32_t> text;
  };
  std::mt19937 random(11);
  Alone alone(model_, kv());
  uint64_t kept = 0, compared = 0;
  for (const uint64_t most : {1u, 2u, 5u, 17u}) {
    BatchOptions options{.threads = threads(), .kv = kv(), .max_context = 140, .sequences = most};
    const uint64_t page_bytes = engine(model_, options)->cache().page_bytes;
    options.cache_bytes = page_bytes * (3 + most);
    auto batch = engine(model_, options);
    const uint64_t context = batch->max_context();
    std::vector<Running> running;
    for (int round = 0; round < 36; ++round) {
      while (running.size() < most && random() % 3 != 0) {
        Running next{0, some_text(random, 1 + random() % context, kind_->vocab)};
        auto opened = batch->open(plain(*model_), next.text);
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        next.number = *opened;
        ASSERT_LT(batch->position(next.number), next.text.size());
        kept += batch->position(next.number);
        running.push_back(std::move(next));
      }
      std::vector<BatchEngine::Part> parts;
      uint64_t room = batch->max_batch(), pages = batch->pages_available();
      std::shuffle(running.begin(), running.end(), random);
      for (const Running& sequence : running) {
        const uint64_t position = batch->position(sequence.number), left = sequence.text.size() - position;
        const uint64_t count = std::min({left, room, random() % 2 == 0 ? uint64_t{1} : 1 + random() % 9});
        if (count == 0 || batch->pages_for(sequence.number, count) > pages)
          continue;
        pages -= batch->pages_for(sequence.number, count);
        room -= count;
        parts.push_back({sequence.number, std::span(sequence.text).subspan(position, count), random() % 4 != 0});
      }
      if (parts.empty())
        continue;
      const auto results = batch->step(parts);
      ASSERT_TRUE(results.ok()) << results.status().message();
      ASSERT_EQ(results->size(), parts.size());
      for (size_t i = 0; i < parts.size(); ++i) {
        const BatchEngine::Result& result = (*results)[i];
        ASSERT_TRUE(result.status.ok()) << result.status.message();
        ASSERT_EQ(result.logits.empty(), !parts[i].logits);
        if (!parts[i].logits)
          continue;
        const auto& sequence = *std::find_if(running.begin(), running.end(),
                                             [&](const Running& r) { return r.number == parts[i].sequence; });
        const auto end = batch->position(sequence.number);
        const auto want = alone.after(sequence.text, end, plain(*model_));
        ASSERT_EQ(want.size(), result.logits.size());
        ASSERT_EQ(std::memcmp(want.data(), result.logits.data(), want.size_bytes()), 0)
            << "position " << end << ", " << parts.size() << " parts of at most " << most;
        ++compared;
      }
      std::erase_if(running, [&](const Running& sequence) {
        if (batch->position(sequence.number) < sequence.text.size() && random() % 12 != 0)
          return false;
        batch->close(sequence.number);
        return true;
      });
    }
    for (const Running& sequence : running)
      batch->close(sequence.number);
    EXPECT_EQ(batch->cache().used, 0u);
  }
  EXPECT_GT(compared, 100u);
  EXPECT_GT(kept, 0u);
}

TEST_P(Batch, AForkGoesItsOwnWay) {
  std::mt19937 random(5);
  Alone alone(model_, kv());
  auto batch = engine(model_, {.threads = threads(), .kv = kv(), .max_context = 140, .sequences = 4});
  const auto text = some_text(random, 100, kind_->vocab);
  const BatchEngine::Sequence first = *batch->open(plain(*model_), text);
  for (uint64_t done = 0; done < text.size();) {
    const uint64_t count = std::min<uint64_t>(text.size() - done, batch->max_batch());
    const BatchEngine::Part part{first, std::span(text).subspan(done, count), true};
    ASSERT_TRUE(batch->step({&part, 1}).ok());
    done += count;
  }
  const uint64_t used = batch->cache().used;
  std::vector<BatchEngine::Sequence> all = {first};
  for (int i = 0; i < 3; ++i) {
    const auto forked = batch->fork(first);
    ASSERT_TRUE(forked.ok()) << forked.status().message();
    EXPECT_EQ(batch->position(*forked), text.size());
    all.push_back(*forked);
  }
  EXPECT_EQ(batch->cache().used, used + 3); // the page that each of them goes on in
  EXPECT_THAT(batch->fork(first).status().message(), HasSubstr("in use"));
  std::vector<std::vector<uint32_t>> texts(4, text);
  for (int round = 0; round < 6; ++round) {
    std::vector<BatchEngine::Part> parts;
    for (size_t i = 0; i < all.size(); ++i) {
      texts[i].push_back((static_cast<uint32_t>(i) * 5 + static_cast<uint32_t>(round)) % kind_->vocab);
      parts.push_back({all[i], std::span(texts[i]).last(1), true});
    }
    const auto results = batch->step(parts);
    ASSERT_TRUE(results.ok()) << results.status().message();
    for (size_t i = 0; i < all.size(); ++i) {
      const auto want = alone.after(texts[i], texts[i].size(), plain(*model_));
      ASSERT_EQ(std::memcmp(want.data(), (*results)[i].logits.data(), want.size_bytes()), 0) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Batch,
                         ::testing::Combine(::testing::Range<size_t>(0, std::size(kKinds)),
                                            ::testing::Values(KvType::kF32, KvType::kF16, KvType::kQ8),
                                            ::testing::Values(1u, 3u)),
                         [](const auto& info) {
                           return std::string(kKinds[std::get<0>(info.param)].name) +
                                  kv_type_name(std::get<1>(info.param)) + std::to_string(std::get<2>(info.param));
                         });

class BatchTest : public ::testing::Test {
protected:
  std::shared_ptr<const Model> tiny(std::span<const test::TinyModel> skills = {}) {
    const Status written = test::TinyModel(1, 1).write(folder_.file("m.cqa"), skills);
    EXPECT_TRUE(written.ok()) << written.message();
    return load(folder_.file("m.cqa"));
  }
  test::TemporaryFolder folder_;
};

TEST_F(BatchTest, SelectionsOfTheOverlayNeverMix) {
  const std::vector<test::TinyModel> skills = {test::TinyModel(1, 7), test::TinyModel(1, 99)};
  const auto model = tiny(skills);
  Alone alone(model, KvType::kF32);
  auto batch = engine(model, {.threads = 2, .kv = KvType::kF32, .sequences = 6});
  std::vector<OverlaySelection> selections;
  for (const char* skill : {"none", "s0", "s1"})
    selections.push_back(*formats::select_overlay(model->overlay(), {.skill = skill, .blend = {}, .task = ""}));
  std::mt19937 random(3);
  const auto text = some_text(random, 90, test::TinyModel::kVocab);
  for (int pass = 0; pass < 2; ++pass) { // the second finds what the first left, under the same selection only
    std::vector<BatchEngine::Sequence> numbers;
    for (size_t i = 0; i < 6; ++i)
      numbers.push_back(*batch->open(selections[i % 3], text));
    const BatchEngine::Part mixed[] = {{numbers[0], std::span(text).first(1), true},
                                       {numbers[1], std::span(text).first(1), true}};
    EXPECT_FALSE(batch->compatible(numbers[0], numbers[1]));
    EXPECT_THAT(batch->step(mixed).status().message(), HasSubstr("different selections"));
    for (const auto number : numbers)
      EXPECT_EQ(batch->position(number), pass == 0 ? 0u : text.size() - 1);
    while (batch->position(numbers.back()) < text.size())
      for (size_t s = 0; s < 3; ++s) { // turns between the selections, as a scheduler takes them
        std::vector<BatchEngine::Part> parts;
        const uint64_t position = batch->position(numbers[s]);
        for (size_t i = s; i < 6; i += 3)
          parts.push_back(
              {numbers[i], std::span(text).subspan(position, std::min<uint64_t>(7, text.size() - position)), true});
        const auto results = batch->step(parts);
        ASSERT_TRUE(results.ok()) << results.status().message();
        for (const auto& result : *results) {
          const auto want = alone.after(text, batch->position(numbers[s]), selections[s]);
          ASSERT_EQ(std::memcmp(want.data(), result.logits.data(), want.size_bytes()), 0) << "selection " << s;
        }
      }
    for (const auto number : numbers)
      batch->close(number);
  }
}

TEST_F(BatchTest, KnowsTheBeginningOfAConversation) {
  const auto model = tiny();
  auto batch = engine(model, {.threads = 1, .sequences = 2});
  std::mt19937 random(1);
  const auto text = some_text(random, 140, test::TinyModel::kVocab);
  const auto run = [&](uint64_t count) {
    const auto number = *batch->open(plain(*model), std::span(text).first(count));
    const uint64_t kept = batch->position(number);
    EXPECT_EQ(batch->known(plain(*model), std::span(text).first(count)), kept);
    for (uint64_t done = kept; done < count;) {
      const BatchEngine::Part part{number, std::span(text).subspan(done, std::min<uint64_t>(16, count - done)), true};
      EXPECT_TRUE(batch->step({&part, 1}).ok());
      done += part.tokens.size();
    }
    batch->close(number);
    return kept;
  };
  EXPECT_EQ(run(90), 0u);
  EXPECT_EQ(run(90), 89u);
  EXPECT_EQ(run(140), 90u); // the page that was not whole goes on in a copy
  EXPECT_EQ(run(70), 69u);
  EXPECT_EQ(run(140), 139u);
  EXPECT_EQ(batch->cache().used, 0u);
  EXPECT_EQ(batch->cache().kept, 3u);
}

TEST_F(BatchTest, AConversationWithStatesGoesOnWhereItEnded) {
  ASSERT_TRUE(test::write_recurrent_model(folder_.file("r.cqa")).ok());
  const auto model = load(folder_.file("r.cqa"));
  Alone alone(model, KvType::kF32);
  std::mt19937 random(1);
  const auto text = some_text(random, 140, test::kRecurrentVocab - 1);
  const auto other = std::vector<uint32_t>(130, 7);
  BatchOptions options{.threads = 1, .kv = KvType::kF32, .max_context = 192, .sequences = 2};
  options.cache_bytes = engine(model, options)->cache().page_bytes * 3;
  auto batch = engine(model, options);
  const auto run = [&](std::span<const uint32_t> prompt) {
    const auto number = *batch->open({}, prompt);
    const uint64_t kept = batch->position(number);
    for (uint64_t done = kept; done < prompt.size();) {
      const BatchEngine::Part part{number, prompt.subspan(done, std::min<uint64_t>(12, prompt.size() - done)), true};
      const auto results = batch->step({&part, 1});
      EXPECT_TRUE(results.ok()) << results.status().message();
      done += part.tokens.size();
      const auto want = alone.after(prompt, done, {});
      EXPECT_EQ(std::memcmp(want.data(), (*results)[0].logits.data(), want.size_bytes()), 0) << done;
    }
    batch->close(number);
    EXPECT_EQ(batch->cache().used, 0u);
    return kept;
  };
  EXPECT_EQ(run(std::span(text).first(90)), 0u);
  EXPECT_EQ(batch->known({}, text), 90u);
  EXPECT_EQ(run(text), 90u);
  EXPECT_EQ(run(std::span(text).first(100)), 0u); // states do not go back; its pages come from the one that ended
  EXPECT_EQ(run(text), 100u);
  EXPECT_EQ(run(other), 0u);
  EXPECT_EQ(run(text), 0u); // forgotten for the pages
}

TEST_F(BatchTest, WhatDoesNotFitIsRefusedAndChangesNothing) {
  const auto model = tiny();
  BatchOptions options{.threads = 1, .max_context = 128, .sequences = 3, .cache_bytes = 1};
  EXPECT_THAT(BatchEngine::create(model, options).status().message(), HasSubstr("no context of 128"));
  options.cache_bytes = 0;
  options.sequences = 0;
  EXPECT_FALSE(BatchEngine::create(model, options).ok());
  options.sequences = 3;
  options.cache_bytes = engine(model, options)->cache().page_bytes * 3; // a context and a page
  auto batch = engine(model, options);
  std::mt19937 random(1);
  const auto text = some_text(random, 128, test::TinyModel::kVocab);
  std::vector<BatchEngine::Sequence> numbers;
  for (int i = 0; i < 3; ++i)
    numbers.push_back(*batch->open(plain(*model), text));
  EXPECT_THAT(batch->open(plain(*model), text).status().message(), HasSubstr("in use"));
  const auto step = [&](std::initializer_list<BatchEngine::Part> parts) {
    return batch->step(parts).status().message();
  };
  EXPECT_THAT(step({}), HasSubstr("no token"));
  EXPECT_THAT(step({{numbers[0], {}, true}}), HasSubstr("no token"));
  EXPECT_THAT(step({{7, text, true}}), HasSubstr("not open"));
  EXPECT_THAT(step({{0, std::span(text).first(1), true}, {0, std::span(text).first(1), true}}), HasSubstr("twice"));
  EXPECT_THAT(step({{0, std::span(text).first(17), true}}), HasSubstr("takes 16"));
  const uint32_t foreign[] = {test::TinyModel::kVocab};
  EXPECT_THAT(step({{0, std::span(text).first(1), true}, {1, foreign, true}}), HasSubstr("vocabulary"));
  EXPECT_EQ(batch->cache().used, 0u);
  // Different texts, so that nothing is shared: the third page is the last.
  const std::vector<uint32_t> other(128, 3), third(128, 4);
  for (int i = 0; i < 5; ++i)
    ASSERT_EQ(step({{0, std::span(text).subspan(batch->position(0), 15), true}, {1, std::span(other).first(1), true}}),
              "");
  EXPECT_THAT(step({{2, std::span(third).first(1), true}}), HasSubstr("0 are free"));
  EXPECT_EQ(batch->position(2), 0u);
  batch->close(2);
  EXPECT_THAT(batch->fork(0).status().message(), HasSubstr("no page"));
  EXPECT_EQ(*batch->open(plain(*model), third), 2u);
  batch->close(1);
  EXPECT_EQ(step({{2, std::span(third).first(1), true}}), "");
}

TEST_F(BatchTest, AFailureIsOfOneSequenceAlone) {
  ASSERT_TRUE(test::write_recurrent_model(folder_.file("r.cqa")).ok());
  const auto model = load(folder_.file("r.cqa"));
  Alone alone(model, KvType::kF16);
  auto batch = engine(model, {.threads = 2, .kv = KvType::kF16, .sequences = 3});
  const std::vector<uint32_t> good = {1, 2, 3, 4}, bad = {1, test::kRecurrentPoison};
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(batch->open({}, good).ok());
  const BatchEngine::Part parts[] = {{0, good, true}, {1, bad, true}, {2, std::span(good).first(3), true}};
  const auto results = batch->step(parts);
  ASSERT_TRUE(results.ok());
  EXPECT_THAT((*results)[1].status.message(), HasSubstr("layer 0"));
  for (const size_t i : {0u, 2u}) {
    ASSERT_TRUE((*results)[i].status.ok());
    const auto want = alone.after(good, parts[i].tokens.size(), {});
    EXPECT_EQ(std::memcmp(want.data(), (*results)[i].logits.data(), want.size_bytes()), 0);
  }
  const BatchEngine::Part again{1, good, true};
  EXPECT_THAT(batch->step({&again, 1}).status().message(), HasSubstr("not open"));
  batch->close(1);
  EXPECT_EQ(*batch->open({}, good), 1u);
  const auto fresh = batch->step({&again, 1});
  ASSERT_TRUE(fresh.ok());
  const auto want = alone.after(good, good.size(), {});
  EXPECT_EQ(std::memcmp(want.data(), (*fresh)[0].logits.data(), want.size_bytes()), 0);
}

} // namespace
} // namespace cortiq::runtime
