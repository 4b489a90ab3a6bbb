// The numbers of shaders/common/abi.glsl are those of formats/artifact/shader_abi.h.

#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace cortiq::codegen {
namespace {

std::map<std::string, int> matches(const std::string& file, const char* pattern) {
  std::ifstream in(std::string(CORTIQ_SOURCE) + "/" + file);
  std::stringstream text;
  text << in.rdbuf();
  const std::string all = text.str();
  std::map<std::string, int> out;
  const std::regex regex(pattern);
  for (std::sregex_iterator m(all.begin(), all.end(), regex), end; m != end; ++m)
    out[(*m)[1]] = std::stoi((*m)[2]);
  return out;
}

/// "SpecHeadDim" as "SPEC_HEAD_DIM".
std::string upper(const std::string& name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    if (i > 0 && std::isupper(name[i]))
      out += '_';
    out += static_cast<char>(std::toupper(name[i]));
  }
  return out;
}

TEST(ShaderAbi, HasOneSetOfNumbers) {
  const auto host = matches("formats/artifact/shader_abi.h", "\\bk([A-Z]\\w*) = (\\d+)");
  const auto device = matches("shaders/common/abi.glsl", "#define (\\w+) (\\d+)");
  ASSERT_GT(device.size(), 40u);
  std::map<std::string, int> renamed;
  for (const auto& [name, value] : host)
    renamed[upper(name)] = value;
  for (const auto& [name, value] : device) {
    ASSERT_TRUE(renamed.count(name)) << name;
    EXPECT_EQ(renamed[name], value) << name;
  }
}

} // namespace
} // namespace cortiq::codegen
