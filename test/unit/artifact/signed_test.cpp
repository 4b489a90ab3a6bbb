// Artifacts whose signer's key is required, and what becomes of their memory.

#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "runtime/loader/load.h"
#include "runtime/loader/signature.h"
#include "runtime/session/session.h"
#include "test/unit/runtime/temporary_folder.h"
#include "test/unit/runtime/tiny_model.h"

namespace cortiq::runtime {
namespace {

using ::testing::HasSubstr;

/// The mappings of this process that can be executed and lie in `name`, with their permissions.
std::vector<std::string> executable_mappings(const std::string& name) {
  std::vector<std::string> out;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(name) != std::string::npos && line.find('x', line.find(' ')) == line.find(' ') + 3)
      out.push_back(line.substr(line.find(' ') + 1, 4));
  return out;
}

class Signed : public ::testing::Test {
protected:
  void SetUp() override {
    path_ = folder_.file("m.cqa");
    ASSERT_TRUE(test::TinyModel().write(path_).ok());
    seed_.fill(1);
  }

  formats::SignerKey sign() {
    const auto signature = sign_artifact_file(path_, seed_);
    EXPECT_TRUE(signature.ok()) << signature.status().message();
    return signature->key;
  }

  static std::vector<float> logits(const std::shared_ptr<const Model>& model) {
    const auto session = Session::create(model, {.threads = 1});
    EXPECT_TRUE(session.ok());
    const auto out = (*session)->forward(std::vector<uint32_t>{1, 2, 3, 4, 5}, true);
    EXPECT_TRUE(out.ok());
    return {out->begin(), out->end()};
  }

  test::TemporaryFolder folder_;
  std::string path_;
  formats::SignerKey seed_{};
};

TEST_F(Signed, WithoutASignatureItIsRefused) {
  formats::SignerKey key{};
  key.fill(2);
  EXPECT_THAT(Model::load(path_, {.require_key = key}).status().message(), HasSubstr("it is not signed"));
  sign();
  EXPECT_THAT(Model::load(path_, {.require_key = key}).status().message(), HasSubstr("required is another key"));
}

TEST_F(Signed, WhatRunsIsWhatWasCheckedWhateverBecomesOfTheFile) {
  const formats::SignerKey key = sign();
  const auto model = Model::load(path_, {.require_key = key});
  ASSERT_TRUE(model.ok()) << model.status().message();
  const std::vector<float> before = logits(*model);
  const uint64_t image =
      (*model)->artifact().file.header().sections[static_cast<uint32_t>(formats::ArtifactSection::kWeights)].offset;
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file << std::string(image, '\xcc');
  }
  EXPECT_EQ(logits(*model), before);
  EXPECT_THAT(executable_mappings("/memfd:cortiq-artifact"), ::testing::ElementsAre("r-xp"));
}

TEST_F(Signed, WithoutAKeyItIsMappedFromTheFileAndNeverWritable) {
  const auto model = Model::load(path_);
  ASSERT_TRUE(model.ok());
  EXPECT_THAT(executable_mappings(path_), ::testing::ElementsAre("r-xp"));
}

TEST_F(Signed, DamagedOnesAreNotSigned) {
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file << "\xff";
  file.close();
  EXPECT_THAT(sign_artifact_file(path_, seed_).status().message(), HasSubstr("its weights are damaged"));
}

} // namespace
} // namespace cortiq::runtime
