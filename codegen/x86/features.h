#pragma once

// What an x86 target has beyond the x86-64 baseline: data, never a question to the host.

#include "formats/status.h"
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cortiq::codegen {

struct X86Features {
  bool avx2 = false;     ///< with FMA, F16C and BMI2: what x86-64-v3 has
  bool avx_vnni = false; ///< vpdpbusd in VEX form
  bool avx512 = false;   ///< F, BW, DQ and VL: 512-bit vectors, 32 registers, masks
  bool avx512_vnni = false;
  bool avx512_vbmi = false; ///< bytes chosen from tables of registers, fields of bits
  bool amx = false;         ///< tiles with products of bytes

  unsigned max_vector_bits() const { return avx512 ? 512 : 256; }
};

/// Features by name ("avx2", "fma", "f16c", "bmi2", "avx_vnni", "avx512f", "avx512bw", "avx512dq", "avx512vl",
/// "avx512_vnni", "avx512vbmi", "amx_tile", "amx_int8"). Refuses names it doesn't know and sets that lack what every
/// kernel needs.
StatusOr<X86Features> x86_features(std::span<const std::string> names);

/// Features of a named target: "x86-64-v3", "avxvnni", "avx512vnni", "avx512vbmi", "amx".
StatusOr<X86Features> x86_target(std::string_view target);

/// The feature names of a named target, or nothing for an unknown one. A loader compares them with the machine's.
std::vector<std::string> x86_target_features(std::string_view target);

} // namespace cortiq::codegen
