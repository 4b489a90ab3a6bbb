#pragma once

// What tests of whole sessions share: a model from a file, a text for it, the logits of a run.

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/session/session.h"
#include "test/unit/runtime/temporary_folder.h"

namespace cortiq::test {

class SessionFixture : public ::testing::Test {
protected:
  /// `words`: ids below it make up texts.
  explicit SessionFixture(uint32_t words) : words_(words) {}

  /// `written`: what came of writing the artifact.
  static std::shared_ptr<const runtime::Model> load(const std::string& path, const Status& written) {
    EXPECT_TRUE(written.ok()) << written.message();
    auto model = runtime::Model::load(path);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return *model;
  }

  static std::unique_ptr<runtime::Session> open(const std::shared_ptr<const runtime::Model>& model, unsigned threads,
                                                runtime::KvType kv, uint64_t context = 0) {
    runtime::SessionOptions options;
    options.threads = threads;
    options.kv = kv;
    options.max_context = context;
    auto made = runtime::Session::create(model, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *std::move(made);
  }

  std::vector<uint32_t> text(size_t count, uint32_t seed = 0) const {
    std::vector<uint32_t> out;
    for (size_t i = 0; i < count; ++i)
      out.push_back(static_cast<uint32_t>((i * i * 5 + i * 3 + seed * 7 + 1) % words_));
    return out;
  }

  /// The logits after each token, which go in `chunk` at a time.
  static std::vector<float> run(runtime::Session& session, std::span<const uint32_t> tokens, size_t chunk = SIZE_MAX) {
    std::vector<float> out;
    for (size_t i = 0; i < tokens.size();) {
      const size_t count = std::min(chunk, tokens.size() - i);
      const auto logits = session.forward(tokens.subspan(i, count), true);
      EXPECT_TRUE(logits.ok()) << logits.status().message();
      if (logits.ok())
        out.insert(out.end(), logits->begin(), logits->end());
      i += count;
    }
    return out;
  }

  static void expect_same(std::span<const float> got, std::span<const float> want, const std::string& what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size_bytes()), 0) << what;
  }

  TemporaryFolder folder_;

private:
  uint32_t words_;
};

} // namespace cortiq::test
