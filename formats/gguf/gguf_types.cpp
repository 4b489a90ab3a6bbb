#include "formats/gguf/gguf_types.h"

#include <algorithm>
#include <array>

namespace cortiq::formats {
namespace {

// Ordered by id. Ids 42 and 143 mean different things to different writers and have a row for each.
constexpr std::array kTypes = {
    GgufTensorType{0, "F32", 1, 4, 0},         GgufTensorType{1, "F16", 1, 2, 0},
    GgufTensorType{2, "Q4_0", 32, 18, 0},      GgufTensorType{3, "Q4_1", 32, 20, 0},
    GgufTensorType{6, "Q5_0", 32, 22, 0},      GgufTensorType{7, "Q5_1", 32, 24, 0},
    GgufTensorType{8, "Q8_0", 32, 34, 0},      GgufTensorType{9, "Q8_1", 32, 36, 0},
    GgufTensorType{10, "Q2_K", 256, 84, 0},    GgufTensorType{11, "Q3_K", 256, 110, 0},
    GgufTensorType{12, "Q4_K", 256, 144, 0},   GgufTensorType{13, "Q5_K", 256, 176, 0},
    GgufTensorType{14, "Q6_K", 256, 210, 0},   GgufTensorType{15, "Q8_K", 256, 292, 0},
    GgufTensorType{16, "IQ2_XXS", 256, 66, 0}, GgufTensorType{17, "IQ2_XS", 256, 74, 0},
    GgufTensorType{18, "IQ3_XXS", 256, 98, 0}, GgufTensorType{19, "IQ1_S", 256, 50, 0},
    GgufTensorType{20, "IQ4_NL", 32, 18, 0},   GgufTensorType{21, "IQ3_S", 256, 110, 0},
    GgufTensorType{22, "IQ2_S", 256, 82, 0},   GgufTensorType{23, "IQ4_XS", 256, 136, 0},
    GgufTensorType{24, "I8", 1, 1, 0},         GgufTensorType{25, "I16", 1, 2, 0},
    GgufTensorType{26, "I32", 1, 4, 0},        GgufTensorType{27, "I64", 1, 8, 0},
    GgufTensorType{28, "F64", 1, 8, 0},        GgufTensorType{29, "IQ1_M", 256, 56, 0},
    GgufTensorType{30, "BF16", 1, 2, 0},       GgufTensorType{34, "TQ1_0", 256, 54, 0},
    GgufTensorType{35, "TQ2_0", 256, 66, 0},   GgufTensorType{36, "I2_S", 128, 32, 32},
    GgufTensorType{37, "I8_S", 1, 1, 32},      GgufTensorType{39, "MXFP4", 32, 17, 0},
    GgufTensorType{40, "NVFP4", 64, 36, 0},    GgufTensorType{41, "Q1_0", 128, 18, 0},
    GgufTensorType{42, "Q2_0", 64, 18, 0},     GgufTensorType{42, "Q2_0_g128", 128, 34, 0},
    GgufTensorType{42, "STQ1_0", 256, 42, 0},  GgufTensorType{43, "FV5", 256, 104, 0},
    GgufTensorType{44, "FV5B", 256, 260, 0},   GgufTensorType{142, "PQ2_0", 128, 34, 0},
    GgufTensorType{143, "G8_0", 32, 16, 0},    GgufTensorType{143, "PTQ1_0", 128, 28, 0},
};

constexpr std::array<uint32_t, 6> kRemoved = {4, 5, 31, 32, 33, 38};

} // namespace

std::span<const GgufTensorType> gguf_tensor_types(uint32_t id) {
  return std::ranges::equal_range(kTypes, id, {}, &GgufTensorType::id);
}

bool is_removed_gguf_type(uint32_t id) {
  return std::find(kRemoved.begin(), kRemoved.end(), id) != kRemoved.end();
}

} // namespace cortiq::formats
