#include "formats/artifact/artifact_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Signature : public ::testing::Test {
protected:
  void SetUp() override {
    // RFC 8032, section 7.1, test 1.
    const auto seed = parse_signer_key("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "seed");
    ASSERT_TRUE(seed.ok());
    seed_ = *seed;
    root_.fill(7);
    const auto made = sign_artifact(root_, *seed);
    ASSERT_TRUE(made.ok());
    signature_ = *made;
  }

  Hash256 root_{};
  SignerKey seed_{};
  ArtifactSignature signature_;
};

TEST_F(Signature, HasTheKeyOfItsSeed) {
  EXPECT_EQ(signer_key_hex(signature_.key), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  EXPECT_TRUE(verify_artifact_signature(signature_, root_, std::nullopt).ok());
  EXPECT_TRUE(verify_artifact_signature(signature_, root_, signature_.key).ok());
}

TEST_F(Signature, RequiredKeysAreNeverRepeated) {
  const std::string said = verify_artifact_signature(signature_, root_, seed_).message();
  EXPECT_THAT(said, HasSubstr("secret key"));
  EXPECT_THAT(said, Not(HasSubstr(signer_key_hex(seed_).substr(0, 8))));
  SignerKey other = seed_;
  other[0] ^= 1;
  EXPECT_THAT(verify_artifact_signature(signature_, root_, other).message(),
              Not(HasSubstr(signer_key_hex(other).substr(8, 8))));
}

TEST_F(Signature, SurvivesItsText) {
  const auto back = parse_artifact_signature(artifact_signature_json(signature_), "it");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->key, signature_.key);
  EXPECT_EQ(back->root, signature_.root);
  EXPECT_EQ(back->signature, signature_.signature);
}

TEST_F(Signature, OfAnotherKeyRootOrMakerIsRefused) {
  SignerKey other = signature_.key;
  other[0] ^= 1;
  EXPECT_THAT(verify_artifact_signature(signature_, root_, other).message(), HasSubstr("required is"));
  Hash256 changed = root_;
  changed[31] ^= 1;
  EXPECT_THAT(verify_artifact_signature(signature_, changed, signature_.key).message(), HasSubstr("another file"));
  // A root that was exchanged together with the file.
  ArtifactSignature forged = signature_;
  forged.root = changed;
  EXPECT_THAT(verify_artifact_signature(forged, changed, signature_.key).message(), HasSubstr("was not made with"));
  for (size_t i = 0; i < forged.signature.size(); i += 9) {
    forged = signature_;
    forged.signature[i] ^= 0x10;
    EXPECT_THAT(verify_artifact_signature(forged, root_, signature_.key).message(), HasSubstr("was not made with"));
  }
}

TEST(SignatureText, OfAnotherFormIsRefused) {
  for (const char* text : {"", "[]", "{}", R"({"alg": 3})", R"({"alg": "ed25519-sha256"})", R"({"alg": "ed25519-cqa"})",
                           R"({"alg": "ed25519-cqa", "pubkey": "00", "root": "00", "sig": "00"})",
                           R"({"alg": "ed25519-cqa", "pubkey": 1})"})
    EXPECT_FALSE(parse_artifact_signature(text, "it").ok()) << text;
}

} // namespace
} // namespace cortiq::formats
