#pragma once

namespace cortiq::compiler {

/// Where a GPU has a mixture's experts.
enum class GpuExperts {
  kAll,     ///< all of them in memory, laid out for it
  kBank,    ///< in slots of an expert bank, as many as fit
  kBankBf16 ///< the same, with values between the products rounded to bf16
};

} // namespace cortiq::compiler
