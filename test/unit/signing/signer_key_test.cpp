#include "formats/signing/signer_key.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/stat.h>

#include "test/unit/runtime/temporary_folder.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

// RFC 8032, section 7.1, test 1.
constexpr char kSeed[] = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

class KeyFiles : public ::testing::Test {
protected:
  std::string write(const std::string& name, const std::string& text, mode_t mode) {
    const std::string path = folder_.file(name);
    std::ofstream(path, std::ios::binary) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  test::TemporaryFolder folder_;
};

TEST(HexDigits, GoThereAndBack) {
  const std::array<uint8_t, 4> bytes = {0x00, 0x9f, 0xa0, 0xff};
  EXPECT_EQ(hex_digits(bytes), "009fa0ff");
  std::array<uint8_t, 4> back;
  ASSERT_TRUE(parse_hex_digits("009Fa0fF", "it", back).ok());
  EXPECT_EQ(back, bytes);
  for (const char* wrong : {"", "009fa0f", "009fa0ff0", "009fa0fg", " 09fa0ff"})
    EXPECT_THAT(parse_hex_digits(wrong, "it", back).message(), HasSubstr("8 hexadecimal digits")) << wrong;
}

TEST_F(KeyFiles, AreReadWithWhiteSpaceAround) {
  const auto seed = read_key_file(write("key", "\n " + std::string(kSeed) + " \r\n", 0600));
  ASSERT_TRUE(seed.ok()) << seed.status().message();
  EXPECT_EQ(signer_key_hex(*seed), kSeed);
}

TEST_F(KeyFiles, ThatOthersCanReadAreRefused) {
  for (const mode_t mode : {0640, 0604, 0660, 0644})
    EXPECT_THAT(read_key_file(write("key", kSeed, mode)).status().message(), HasSubstr("chmod 600")) << mode;
}

TEST_F(KeyFiles, WithoutAKeyDoNotShowWhatTheyHold) {
  for (const std::string& text :
       {std::string(), std::string(kSeed).substr(1), std::string(kSeed) + "0", std::string(5000, 'a')}) {
    const Status status = read_key_file(write("key", text, 0600)).status();
    EXPECT_THAT(status.message(), HasSubstr("no key file"));
    EXPECT_THAT(status.message(), ::testing::Not(HasSubstr("61b19def")));
  }
}

TEST_F(KeyFiles, AreMadeOnceAndForTheirOwner) {
  const std::string path = folder_.file("new");
  const auto key = make_key_file(path);
  ASSERT_TRUE(key.ok()) << key.status().message();
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(read(path + ".pub"), signer_key_hex(*key) + "\n");
  const std::string before = read(path);
  EXPECT_THAT(make_key_file(path).status().message(), HasSubstr("never written over"));
  EXPECT_EQ(read(path), before);
  // A public key alone is not replaced either, and no key is left beside it.
  std::filesystem::remove(path);
  EXPECT_THAT(make_key_file(path).status().message(), HasSubstr("never written over"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(KeyFiles, PublicKeysAreDigitsOrTheirFile) {
  const std::string path = write("key.pub", std::string(kSeed) + "\n", 0644);
  for (const std::string& word : {std::string(kSeed), path}) {
    const auto key = read_public_key(word, "--require-key");
    ASSERT_TRUE(key.ok()) << key.status().message();
    EXPECT_EQ(signer_key_hex(*key), kSeed);
  }
  EXPECT_THAT(read_public_key("12", "--require-key").status().message(), HasSubstr("--require-key is '12', not 64"));
  EXPECT_THAT(read_public_key(folder_.file("nothing"), "--require-key").status().message(),
              HasSubstr("does not exist"));
}

} // namespace
} // namespace cortiq::formats
