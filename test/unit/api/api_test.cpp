#include "api/cortiq.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "runtime/loader/signature.h"
#include "test/unit/runtime/temporary_folder.h"
#include "test/unit/runtime/tiny_model.h"

namespace cortiq {
namespace {

using test::relative_error;
using test::TinyModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Sums of 56 f32 products through two layers, against doubles.
constexpr double kF32Error = 2e-5;

class ApiTest : public ::testing::Test {
protected:
  void SetUp() override {
    const Status written = base_.write(folder_.file("m.cqa"), skills_);
    ASSERT_TRUE(written.ok()) << written.message();
    ASSERT_EQ(cortiq_model_load(folder_.file("m.cqa").c_str(), nullptr, &model_), CORTIQ_OK) << cortiq_last_error();
  }
  void TearDown() override {
    for (cortiq_session* session : sessions_)
      cortiq_session_free(session);
    cortiq_model_free(model_);
  }

  cortiq_session* session(uint32_t threads = 1) {
    cortiq_session_options options = CORTIQ_SESSION_OPTIONS;
    options.threads = threads;
    options.kv = "f32";
    cortiq_session* out = nullptr;
    EXPECT_EQ(cortiq_session_create(model_, &options, &out), CORTIQ_OK) << cortiq_last_error();
    sessions_.push_back(out);
    return out;
  }

  static cortiq_generate_options greedy(uint64_t tokens) {
    cortiq_generate_options options = CORTIQ_GENERATE_OPTIONS;
    options.max_tokens = tokens;
    options.temperature = 0;
    return options;
  }

  static std::vector<uint32_t> generate(cortiq_session* session, const std::vector<uint32_t>& prompt, uint64_t tokens) {
    const cortiq_generate_options options = greedy(tokens);
    std::vector<uint32_t> out;
    const auto add = [](void* user, uint32_t id, const char*, size_t) {
      static_cast<std::vector<uint32_t>*>(user)->push_back(id);
      return 0;
    };
    EXPECT_EQ(cortiq_session_generate(session, prompt.data(), prompt.size(), &options, add, &out, nullptr), CORTIQ_OK)
        << cortiq_last_error();
    return out;
  }

  test::TemporaryFolder folder_;
  TinyModel base_;
  std::vector<TinyModel> skills_ = {TinyModel(1, 2), TinyModel(1, 3)};
  cortiq_model* model_ = nullptr;
  std::vector<cortiq_session*> sessions_;
};

const std::vector<uint32_t> kPrompt = {3, 14, 15, 9, 26};

TEST_F(ApiTest, LogitsAreThoseOfPlainArithmetic) {
  cortiq_session* s = session(2);
  const float* logits = nullptr;
  size_t rows = 0;
  ASSERT_EQ(cortiq_session_run(s, kPrompt.data(), kPrompt.size(), 1, &logits, &rows), CORTIQ_OK);
  EXPECT_EQ(rows, kPrompt.size());
  EXPECT_EQ(cortiq_session_position(s), kPrompt.size());
  EXPECT_LT(relative_error({logits, rows * TinyModel::kVocab}, base_.reference(kPrompt)), kF32Error);
  ASSERT_EQ(cortiq_session_run(s, kPrompt.data(), 1, 0, &logits, &rows), CORTIQ_OK);
  EXPECT_EQ(rows, 1u);
  std::vector<uint32_t> whole = kPrompt;
  whole.insert(whole.end(), {kPrompt[0], 7});
  ASSERT_EQ(cortiq_session_append(s, 7, &logits), CORTIQ_OK);
  EXPECT_EQ(cortiq_session_position(s), whole.size());
  const std::vector<double> want = base_.reference(whole);
  EXPECT_LT(relative_error({logits, TinyModel::kVocab}, std::span(want).last(TinyModel::kVocab)), kF32Error);
}

TEST_F(ApiTest, DescribesTheModelToCallersOfAnyAge) {
  cortiq_model_info info = CORTIQ_MODEL_INFO;
  ASSERT_EQ(cortiq_model_describe(model_, &info), CORTIQ_OK);
  EXPECT_EQ(info.vocab, TinyModel::kVocab);
  EXPECT_EQ(info.skills, 2u);
  EXPECT_EQ(info.masks, 2u);
  EXPECT_STREQ(cortiq_model_skill(model_, 1), "s1");
  EXPECT_EQ(cortiq_model_skill(model_, 2), nullptr);
  EXPECT_STREQ(cortiq_model_mask(model_, 0), "open");
  // A caller of before a field was appended: what lies behind its structure is not touched.
  cortiq_model_info older = CORTIQ_MODEL_INFO;
  older.size = offsetof(cortiq_model_info, skills);
  older.skills = 77;
  ASSERT_EQ(cortiq_model_describe(model_, &older), CORTIQ_OK);
  EXPECT_EQ(older.vocab, TinyModel::kVocab);
  EXPECT_EQ(older.skills, 77u);
}

TEST_F(ApiTest, ASignersKeyCanBeRequired) {
  formats::SignerKey seed{};
  const std::string path = folder_.file("m.cqa");
  cortiq_load_options options = CORTIQ_LOAD_OPTIONS;
  const std::string nobody(64, '1');
  options.require_key = nobody.c_str();
  cortiq_model* model = nullptr;
  EXPECT_EQ(cortiq_model_load(path.c_str(), &options, &model), CORTIQ_INVALID);
  EXPECT_THAT(cortiq_last_error(), HasSubstr("it is not signed"));
  const auto signature = runtime::sign_artifact_file(path, seed);
  ASSERT_TRUE(signature.ok()) << signature.status().message();
  EXPECT_EQ(cortiq_model_load(path.c_str(), &options, &model), CORTIQ_INVALID);
  EXPECT_THAT(cortiq_last_error(), HasSubstr("required is another key"));
  const std::string key = formats::signer_key_hex(signature->key);
  options.require_key = key.c_str();
  EXPECT_EQ(cortiq_model_load(path.c_str(), &options, &model), CORTIQ_OK) << cortiq_last_error();
  cortiq_model_free(model);
  options.require_key = "12";
  EXPECT_EQ(cortiq_model_load(path.c_str(), &options, &model), CORTIQ_INVALID);
  EXPECT_THAT(cortiq_last_error(), HasSubstr("64 hexadecimal digits"));
}

TEST_F(ApiTest, ADeviceIsANumberOrAutoAndAnArtifactOfTheCpuHasNone) {
  const std::string path = folder_.file("m.cqa");
  cortiq_load_options options = CORTIQ_LOAD_OPTIONS;
  cortiq_model* model = nullptr;
  for (const char* word : {"", "x", "0,", "none", "list"}) {
    options.device = word;
    EXPECT_EQ(cortiq_model_load(path.c_str(), &options, &model), CORTIQ_INVALID) << word;
    EXPECT_THAT(cortiq_last_error(), HasSubstr("numbers of GPUs")) << word;
  }
  options.device = "0";
  EXPECT_EQ(cortiq_model_load(path.c_str(), &options, &model), CORTIQ_UNSUPPORTED);
  EXPECT_THAT(cortiq_last_error(), HasSubstr("--target vulkan"));
  EXPECT_EQ(model, nullptr);
  options.cpu_fallback = 1;
  ASSERT_EQ(cortiq_model_load(path.c_str(), &options, &model), CORTIQ_OK);
  cortiq_model_info info = CORTIQ_MODEL_INFO;
  ASSERT_EQ(cortiq_model_describe(model, &info), CORTIQ_OK);
  EXPECT_STREQ(info.device, "");
  EXPECT_THAT(info.device_note, HasSubstr("the CPU runs the model"));
  cortiq_model_free(model);
}

TEST_F(ApiTest, FailuresAreACodeAndASentenceOfTheThread) {
  cortiq_model* none = model_;
  EXPECT_EQ(cortiq_model_load(folder_.file("absent.cqa").c_str(), nullptr, &none), CORTIQ_IO);
  EXPECT_EQ(none, nullptr);
  EXPECT_THAT(cortiq_last_error(), HasSubstr("absent.cqa"));
  std::thread([] { EXPECT_STREQ(cortiq_last_error(), ""); }).join();

  cortiq_session* s = session();
  const uint32_t beyond = TinyModel::kVocab;
  EXPECT_EQ(cortiq_session_run(s, &beyond, 1, 0, nullptr, nullptr), CORTIQ_INVALID);
  EXPECT_EQ(cortiq_session_append(s, beyond, nullptr), CORTIQ_INVALID);
  EXPECT_EQ(cortiq_session_generate(s, &beyond, 1, nullptr, nullptr, nullptr, nullptr), CORTIQ_INVALID);
  EXPECT_THAT(cortiq_last_error(), HasSubstr("37"));
  EXPECT_EQ(cortiq_session_generate(s, nullptr, 0, nullptr, nullptr, nullptr, nullptr), CORTIQ_INVALID);
  EXPECT_EQ(cortiq_session_rewind(s, 1), CORTIQ_INVALID);
  EXPECT_EQ(cortiq_session_select(s, "absent", nullptr), CORTIQ_INVALID);
  EXPECT_THAT(cortiq_last_error(), HasSubstr("absent"));
  cortiq_generate_options hot = greedy(1);
  hot.temperature = -1;
  EXPECT_EQ(cortiq_session_generate(s, kPrompt.data(), 1, &hot, nullptr, nullptr, nullptr), CORTIQ_INVALID);
  cortiq_session_options odd = CORTIQ_SESSION_OPTIONS;
  odd.kv = "f12";
  cortiq_session* unmade = s;
  EXPECT_EQ(cortiq_session_create(model_, &odd, &unmade), CORTIQ_INVALID);
  EXPECT_THAT(cortiq_last_error(), HasSubstr("f12"));
  EXPECT_EQ(unmade, nullptr);
  EXPECT_EQ(cortiq_encode(model_, "x", 1, CORTIQ_PLAIN, nullptr, 0, nullptr), CORTIQ_UNSUPPORTED);
  EXPECT_THAT(cortiq_last_error(), HasSubstr("no tokenizer"));
  EXPECT_EQ(cortiq_session_position(s), 0u);
}

TEST_F(ApiTest, KeepsTheCommonBeginning) {
  cortiq_session* s = session();
  const std::vector<uint32_t> answer = generate(s, kPrompt, 6);
  ASSERT_EQ(answer.size(), 6u);
  // The last token was chosen, but not run.
  EXPECT_EQ(cortiq_session_position(s), kPrompt.size() + 5);
  std::vector<uint32_t> longer = kPrompt;
  longer.insert(longer.end(), answer.begin(), answer.begin() + 3);
  longer.push_back((answer[3] + 1) % TinyModel::kVocab);
  size_t kept = 0;
  ASSERT_EQ(cortiq_session_keep(s, longer.data(), longer.size(), &kept), CORTIQ_OK);
  EXPECT_EQ(kept, kPrompt.size() + 3);
  const std::vector<uint32_t> rest(longer.begin() + static_cast<std::ptrdiff_t>(kept), longer.end());
  EXPECT_EQ(generate(s, rest, 4), generate(session(), longer, 4));
  ASSERT_EQ(cortiq_session_keep(s, kPrompt.data(), kPrompt.size(), &kept), CORTIQ_OK);
  EXPECT_EQ(kept, kPrompt.size() - 1);
  ASSERT_EQ(cortiq_session_keep(s, nullptr, 0, &kept), CORTIQ_OK);
  EXPECT_EQ(cortiq_session_position(s), 0u);
}

TEST_F(ApiTest, ACallbackEndsTheGeneration) {
  cortiq_session* s = session();
  const std::vector<uint32_t> whole = generate(s, kPrompt, 8);
  cortiq_session_rewind(s, 0);
  struct Seen {
    std::vector<uint32_t> ids;
  } seen;
  const auto stop_at_third = [](void* user, uint32_t id, const char*, size_t) {
    auto& ids = static_cast<Seen*>(user)->ids;
    ids.push_back(id);
    return ids.size() == 3 ? 1 : 0;
  };
  cortiq_result result = CORTIQ_RESULT;
  const cortiq_generate_options options = greedy(8);
  ASSERT_EQ(cortiq_session_generate(s, kPrompt.data(), kPrompt.size(), &options, stop_at_third, &seen, &result),
            CORTIQ_OK);
  EXPECT_EQ(result.finish, CORTIQ_FINISH_CALLBACK);
  EXPECT_EQ(result.tokens, 3u);
  EXPECT_THAT(seen.ids, ElementsAre(whole[0], whole[1], whole[2]));
  EXPECT_EQ(cortiq_session_position(s), kPrompt.size() + 2);
}

TEST_F(ApiTest, ACallbackMayLookAndCancelButNotChangeTheSession) {
  const std::vector<uint32_t> whole = generate(session(), kPrompt, 8);
  struct Seen {
    cortiq_session* session;
    std::vector<uint32_t> ids;
    bool refused = true;
  } seen{session(), {}};
  const auto meddle = [](void* user, uint32_t id, const char*, size_t) {
    auto& [s, ids, refused] = *static_cast<Seen*>(user);
    ids.push_back(id);
    size_t kept = 0;
    refused = refused && cortiq_session_run(s, kPrompt.data(), 2, 0, nullptr, nullptr) == CORTIQ_INVALID &&
              cortiq_session_generate(s, kPrompt.data(), 2, nullptr, nullptr, nullptr, nullptr) == CORTIQ_INVALID &&
              std::strstr(cortiq_last_error(), "at work") && cortiq_session_rewind(s, 0) == CORTIQ_INVALID &&
              cortiq_session_keep(s, kPrompt.data(), 1, &kept) == CORTIQ_INVALID &&
              cortiq_session_select(s, nullptr, nullptr) == CORTIQ_OK &&
              cortiq_session_position(s) == kPrompt.size() + ids.size() - 1;
    if (ids.size() == 6)
      cortiq_session_cancel(s);
    return 0;
  };
  const cortiq_generate_options options = greedy(8);
  EXPECT_EQ(cortiq_session_generate(seen.session, kPrompt.data(), kPrompt.size(), &options, meddle, &seen, nullptr),
            CORTIQ_CANCELLED);
  EXPECT_TRUE(seen.refused);
  EXPECT_EQ(seen.ids, std::vector<uint32_t>(whole.begin(), whole.begin() + 6));
  // What it holds goes on as if nothing had been tried.
  const std::vector<uint32_t> rest = generate(seen.session, {whole[5]}, 2);
  EXPECT_EQ(rest, std::vector<uint32_t>(whole.begin() + 6, whole.end()));
}

TEST_F(ApiTest, NoArgumentAtAllIsAFailure) {
  cortiq_session* s = session();
  cortiq_generate_options endless = greedy(4);
  endless.stop_id_count = 3;
  EXPECT_EQ(cortiq_session_generate(s, kPrompt.data(), 1, &endless, nullptr, nullptr, nullptr), CORTIQ_INVALID);
  EXPECT_THAT(cortiq_last_error(), HasSubstr("stop_ids"));
  EXPECT_EQ(cortiq_session_position(nullptr), 0u);
  EXPECT_EQ(cortiq_model_skill(nullptr, 0), nullptr);
  EXPECT_EQ(cortiq_model_mask(nullptr, 0), nullptr);
  EXPECT_EQ(cortiq_model_describe(nullptr, nullptr), CORTIQ_INVALID);
  EXPECT_EQ(cortiq_encode(nullptr, nullptr, 0, 0, nullptr, 0, nullptr), CORTIQ_INVALID);
  EXPECT_EQ(cortiq_session_create(nullptr, nullptr, nullptr), CORTIQ_INVALID);
  EXPECT_EQ(cortiq_session_run(nullptr, nullptr, 0, 0, nullptr, nullptr), CORTIQ_INVALID);
  EXPECT_EQ(cortiq_session_append(nullptr, 0, nullptr), CORTIQ_INVALID);
  EXPECT_EQ(cortiq_session_keep(nullptr, nullptr, 0, nullptr), CORTIQ_INVALID);
  cortiq_session_cancel(nullptr);
  cortiq_session_free(nullptr);
  cortiq_model_free(nullptr);
  // Structures that say nothing of themselves are the defaults, and get nothing.
  cortiq_generate_options none = {};
  cortiq_result nothing = {};
  none.max_tokens = 4;
  EXPECT_EQ(cortiq_session_generate(
                s, kPrompt.data(), 1, &none, [](void*, uint32_t, const char*, size_t) { return 1; }, nullptr, &nothing),
            CORTIQ_OK);
  EXPECT_EQ(nothing.tokens, 0u);
}

TEST_F(ApiTest, IsCancelledFromAnotherThread) {
  cortiq_session* s = session();
  cortiq_session_cancel(s); // nothing to cancel: the next generation is not affected
  EXPECT_EQ(generate(s, kPrompt, 2).size(), 2u);
  cortiq_session_rewind(s, 0);
  std::atomic<int> tokens = 0;
  std::atomic<bool> done = false;
  std::thread canceller([&] {
    while (tokens < 2 && !done)
      std::this_thread::yield();
    cortiq_session_cancel(s);
  });
  // Waits for the cancellation once it is due, so that the test does not depend on speed.
  const auto count = [](void* user, uint32_t, const char*, size_t) {
    auto& seen = *static_cast<std::atomic<int>*>(user);
    if (++seen == 3)
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return 0;
  };
  const cortiq_generate_options options = greedy(100);
  const cortiq_status status =
      cortiq_session_generate(s, kPrompt.data(), kPrompt.size(), &options, count, &tokens, nullptr);
  done = true;
  canceller.join();
  EXPECT_EQ(status, CORTIQ_CANCELLED);
  EXPECT_LT(tokens, 100);
  // The session goes on.
  cortiq_session_rewind(s, 0);
  EXPECT_EQ(generate(s, kPrompt, 4), generate(session(), kPrompt, 4));
}

TEST_F(ApiTest, EmbedsFromAnEmptySessionAndLeavesOne) {
  cortiq_session* s = session();
  const std::vector<uint32_t> ids = {5, 1, 30, 7};
  ASSERT_EQ(cortiq_session_run(s, ids.data(), 2, 0, nullptr, nullptr), CORTIQ_OK);
  const std::vector<double> rows = base_.hidden_reference(ids);
  for (const int32_t pooling : {CORTIQ_POOL_MEAN, CORTIQ_POOL_LAST}) {
    std::vector<double> want(TinyModel::kHidden);
    for (size_t t = pooling == CORTIQ_POOL_LAST ? ids.size() - 1 : 0; t < ids.size(); ++t)
      for (size_t i = 0; i < want.size(); ++i)
        want[i] += rows[t * want.size() + i];
    double length = 0;
    for (const double value : want)
      length += value * value;
    std::vector<float> got(TinyModel::kHidden);
    size_t count = 0;
    ASSERT_EQ(cortiq_session_embed(s, ids.data(), ids.size(), pooling, got.data(), got.size(), &count), CORTIQ_OK)
        << cortiq_last_error();
    ASSERT_EQ(count, TinyModel::kHidden);
    for (size_t i = 0; i < count; ++i)
      EXPECT_NEAR(got[i], want[i] / std::sqrt(length), kF32Error);
    EXPECT_EQ(cortiq_session_position(s), 0u);
  }
  size_t count = 0;
  EXPECT_EQ(cortiq_session_embed(s, ids.data(), ids.size(), 0, nullptr, 0, &count), CORTIQ_OK);
  EXPECT_EQ(count, TinyModel::kHidden);
  EXPECT_EQ(cortiq_session_embed(s, ids.data(), ids.size(), 9, nullptr, 0, &count), CORTIQ_INVALID);
  EXPECT_EQ(cortiq_session_embed(s, nullptr, 0, 0, nullptr, 0, &count), CORTIQ_INVALID);
  EXPECT_EQ(cortiq_session_embed(nullptr, ids.data(), 1, 0, nullptr, 0, &count), CORTIQ_INVALID);
}

TEST_F(ApiTest, SelectsSkillsAndBlends) {
  cortiq_session* s = session();
  const float* logits = nullptr;
  size_t rows = 0;
  const auto run = [&] {
    cortiq_session_rewind(s, 0);
    EXPECT_EQ(cortiq_session_run(s, kPrompt.data(), kPrompt.size(), 1, &logits, &rows), CORTIQ_OK);
  };
  ASSERT_EQ(cortiq_session_select(s, "s1", nullptr), CORTIQ_OK) << cortiq_last_error();
  run();
  const std::pair<const TinyModel*, float> alone[] = {{&skills_[1], 1.0f}};
  EXPECT_LT(relative_error({logits, rows * TinyModel::kVocab}, base_.mixed(alone).reference(kPrompt)), kF32Error);
  ASSERT_EQ(cortiq_session_select(s, "s0:0.75,s1:0.25", nullptr), CORTIQ_OK) << cortiq_last_error();
  run();
  const std::pair<const TinyModel*, float> blend[] = {{&skills_[0], 0.75f}, {&skills_[1], 0.25f}};
  EXPECT_LT(relative_error({logits, rows * TinyModel::kVocab}, base_.mixed(blend).reference(kPrompt)), kF32Error);
  ASSERT_EQ(cortiq_session_select(s, nullptr, nullptr), CORTIQ_OK);
  run();
  EXPECT_LT(relative_error({logits, rows * TinyModel::kVocab}, base_.reference(kPrompt)), kF32Error);
}

TEST_F(ApiTest, SavesAndLoadsASession) {
  const std::string path = folder_.file("s");
  const std::vector<uint32_t> prompt = {3, 1, 4, 1, 5};
  cortiq_session* own = session();
  generate(own, prompt, 20);
  const size_t held = cortiq_session_position(own);
  ASSERT_EQ(cortiq_session_save(own, path.c_str()), CORTIQ_OK) << cortiq_last_error();
  const auto want = generate(own, {7}, 10);

  cortiq_session* other = session();
  generate(other, {2, 2}, 3);
  ASSERT_EQ(cortiq_session_load(other, path.c_str()), CORTIQ_OK) << cortiq_last_error();
  std::vector<uint32_t> ids(100);
  size_t count = 0;
  ASSERT_EQ(cortiq_session_ids(other, ids.data(), ids.size(), &count), CORTIQ_OK);
  EXPECT_EQ(count, held);
  EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), ids.begin()));
  EXPECT_EQ(generate(other, {7}, 10), want);

  const uint64_t before = cortiq_session_position(other);
  EXPECT_EQ(cortiq_session_load(other, folder_.file("m.cqa").c_str()), CORTIQ_INVALID);
  EXPECT_THAT(cortiq_last_error(), HasSubstr("is not a saved session"));
  EXPECT_EQ(cortiq_session_position(other), before);
  EXPECT_EQ(cortiq_session_load(other, folder_.file("none").c_str()), CORTIQ_IO);
  EXPECT_EQ(cortiq_session_save(other, folder_.file("no/s").c_str()), CORTIQ_IO);
  EXPECT_EQ(cortiq_session_save(nullptr, path.c_str()), CORTIQ_INVALID);
}

TEST_F(ApiTest, SessionsOutliveTheModelsHandleAndShareIt) {
  std::vector<uint32_t> want = generate(session(), kPrompt, 20);
  std::vector<cortiq_session*> several = {session(), session(2), session()};
  cortiq_model_free(model_);
  model_ = nullptr;
  std::vector<std::thread> threads;
  for (cortiq_session* s : several)
    threads.emplace_back([s, &want] { EXPECT_EQ(generate(s, kPrompt, 20), want); });
  for (std::thread& thread : threads)
    thread.join();
}

} // namespace
} // namespace cortiq
