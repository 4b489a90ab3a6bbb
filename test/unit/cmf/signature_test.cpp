#include "formats/cmf/signature.h"

#include <gmock/gmock.h>
#include <sodium.h>
#include <unistd.h>

#include "formats/json.h"
#include "formats/mapped_file.h"
#include "test/unit/cmf/sample.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string hex(std::span<const uint8_t> bytes) {
  std::string out(2 * bytes.size() + 1, '\0');
  sodium_bin2hex(out.data(), out.size(), bytes.data(), bytes.size());
  out.pop_back();
  return out;
}

/// A key pair from a fixed seed.
struct Signer {
  explicit Signer(uint8_t seed_byte) {
    EXPECT_GE(sodium_init(), 0);
    std::array<uint8_t, crypto_sign_SEEDBYTES> seed;
    seed.fill(seed_byte);
    crypto_sign_seed_keypair(key.data(), secret.data(), seed.data());
  }
  Json sidecar(std::span<const uint8_t> bytes) const {
    std::array<uint8_t, 32> digest;
    crypto_hash_sha256(digest.data(), bytes.data(), bytes.size());
    std::array<uint8_t, 64> signature;
    crypto_sign_detached(signature.data(), nullptr, digest.data(), digest.size(), secret.data());
    return {{"alg", "ed25519-sha256"}, {"pubkey", hex(key)}, {"sha256", hex(digest)}, {"sig", hex(signature)}};
  }
  SignerKey key{};
  std::array<uint8_t, crypto_sign_SECRETKEYBYTES> secret{};
};

class SignatureTest : public ::testing::Test {
protected:
  Status verify(const Json& sidecar, std::span<const uint8_t> bytes,
                const std::optional<SignerKey>& required = std::nullopt) {
    const auto signature = parse_cmf_signature(sidecar.dump(), "the sidecar");
    return signature.ok() ? verify_cmf_signature(*signature, bytes, required) : signature.status();
  }
  Signer signer_{1}, other_{2};
  std::vector<uint8_t> bytes_ = std::vector<uint8_t>(10000, 0x5A);
};

TEST_F(SignatureTest, AcceptsWhatTheKeySigned) {
  EXPECT_TRUE(verify(signer_.sidecar(bytes_), bytes_).ok());
  EXPECT_TRUE(verify(signer_.sidecar(bytes_), bytes_, signer_.key).ok());
}

TEST_F(SignatureTest, TakesDigitsOfEitherCase) {
  Json sidecar = signer_.sidecar(bytes_);
  for (const char* field : {"pubkey", "sha256", "sig"}) {
    std::string digits = sidecar[field];
    std::transform(digits.begin(), digits.end(), digits.begin(), ::toupper);
    sidecar[field] = digits;
  }
  EXPECT_TRUE(verify(sidecar, bytes_, signer_.key).ok());
  std::string upper = signer_key_hex(signer_.key);
  std::transform(upper.begin(), upper.end(), upper.begin(), ::toupper);
  const StatusOr<SignerKey> key = parse_signer_key(upper, "--require-key");
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(*key, signer_.key);
}

TEST_F(SignatureTest, NoticesEveryChangedBit) {
  const Json sidecar = signer_.sidecar(bytes_);
  for (const size_t at : {size_t{0}, bytes_.size() / 2, bytes_.size() - 1}) {
    std::vector<uint8_t> changed = bytes_;
    changed[at] ^= 0x10;
    const Status status = verify(sidecar, changed);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr("changed after signing"));
  }
  EXPECT_FALSE(verify(sidecar, std::span(bytes_).first(bytes_.size() - 1)).ok());
}

TEST_F(SignatureTest, SaysWhatDoesNotFit) {
  const Json good = signer_.sidecar(bytes_);
  const Json foreign = other_.sidecar(bytes_);
  // The key that was asked for is not repeated: it may be a secret one, given by mistake.
  const std::string another(verify(foreign, bytes_, signer_.key).message());
  EXPECT_THAT(another, HasSubstr("signed by " + signer_key_hex(other_.key)));
  EXPECT_THAT(another, Not(HasSubstr(signer_key_hex(signer_.key))));
  // The right digest and a signature of somebody else.
  Json swapped = good;
  swapped["sig"] = foreign["sig"];
  EXPECT_THAT(verify(swapped, bytes_).message(), HasSubstr("not made with the key"));
  // A key with which everything would verify is no key.
  Json weak = good;
  weak["pubkey"] = std::string(64, '0');
  EXPECT_FALSE(verify(weak, bytes_).ok());
}

TEST_F(SignatureTest, RefusesMalformedSidecars) {
  const Json good = signer_.sidecar(bytes_);
  const auto with = [&](const char* key, const Json& value) {
    Json changed = good;
    changed[key] = value;
    return changed.dump();
  };
  const auto without = [&](const char* key) {
    Json changed = good;
    changed.erase(key);
    return changed.dump();
  };
  const std::pair<std::string, const char*> cases[] = {
      {with("alg", "rsa"), "algorithm 'rsa'"},
      {with("alg", 1), "alg"},
      {with("pubkey", "00"), "64 hexadecimal digits"},
      {with("pubkey", std::string(64, 'g')), "64 hexadecimal digits"},
      {with("sha256", std::string(66, '0')), "64 hexadecimal digits"},
      {with("sig", std::string(64, '0')), "128 hexadecimal digits"},
      {with("sig", nullptr), "sig"},
      {without("alg"), "alg is missing"},
      {without("pubkey"), "pubkey is missing"},
      {without("sha256"), "sha256 is missing"},
      {without("sig"), "sig is missing"},
      {"[]", "not a JSON object"},
      {"{", "not valid JSON"},
      {"", "JSON"},
  };
  for (const auto& [text, reason] : cases) {
    const StatusOr<CmfSignature> signature = parse_cmf_signature(text, "the sidecar");
    ASSERT_FALSE(signature.ok()) << text;
    EXPECT_THAT(signature.status().message(), HasSubstr(reason)) << text;
    EXPECT_EQ(exit_code(signature.status()), 2);
  }
}

TEST_F(SignatureTest, ReadsTheSidecarBesideTheFile) {
  const test::ScratchFolder folder;
  const std::string path = folder / "m.cmf";
  ASSERT_TRUE(write_sample(path).ok());
  const StatusOr<std::optional<CmfSignature>> none = read_cmf_signature(path);
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_FALSE(none->has_value());

  const std::vector<uint8_t> bytes = test::read_bytes(path);
  test::write_bytes(path + ".sig", test::bytes_of(signer_.sidecar(bytes).dump(2)));
  const StatusOr<std::optional<CmfSignature>> found = read_cmf_signature(path);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_TRUE(verify_cmf_signature(**found, bytes, signer_.key).ok());
}

TEST_F(SignatureTest, TakesALostSidecarForAFailure) {
  const test::ScratchFolder folder;
  ASSERT_EQ(symlink("nowhere", (folder / "m.cmf.sig").c_str()), 0);
  EXPECT_FALSE(read_cmf_signature(folder / "m.cmf").ok());
  test::write_bytes(folder / "large.cmf.sig", std::vector<uint8_t>(1 << 20, ' '));
  const auto large = read_cmf_signature(folder / "large.cmf");
  ASSERT_FALSE(large.ok());
  EXPECT_THAT(large.status().message(), HasSubstr("too many for a signature"));
}

TEST_F(SignatureTest, JudgesTheFixtures) {
  CORTIQ_NEED_FIXTURES();
  const auto judge = [](const std::string& path) {
    const StatusOr<MappedFile> file = MappedFile::open(path);
    const StatusOr<std::optional<CmfSignature>> signature = read_cmf_signature(path);
    EXPECT_TRUE(file.ok() && signature.ok() && signature->has_value()) << path;
    return verify_cmf_signature(**signature, file->bytes(), std::nullopt);
  };
  EXPECT_TRUE(judge(test::fixtures() + "/models/signed.cmf").ok());
  const Status tampered = judge(test::fixtures() + "/models/signed-tampered.cmf");
  EXPECT_THAT(tampered.message(), HasSubstr("changed after signing"));
}

} // namespace
} // namespace cortiq::formats
