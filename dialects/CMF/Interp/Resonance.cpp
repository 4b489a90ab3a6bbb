#include <limits>

#include "dialects/CMF/Interp/OpTable.h"

using namespace mlir;

namespace cortiq::cmf {

Status referenceResonance(Operation* op, Frame& frame) {
  auto resonance = cast<ResonanceOp>(op);
  const Array& x = frame.value(resonance.getX());
  const int64_t experts = resonance.getMeans().size(), grown = resonance.getShells().size();
  Array out(x.rows, experts);
  for (int64_t e = 0; e < experts; ++e) {
    CORTIQ_ASSIGN_OR_RETURN(const auto mean, frame.weight(resonance.getMeans()[e]));
    CORTIQ_ASSIGN_OR_RETURN(const auto bias, frame.weight(resonance.getBiases()[e]));
    std::shared_ptr<const std::vector<float>> basis, shell;
    if (!resonance.getBases().empty()) {
      CORTIQ_ASSIGN_OR_RETURN(basis, frame.weight(resonance.getBases()[e]));
    }
    if (e >= experts - grown) {
      CORTIQ_ASSIGN_OR_RETURN(shell, frame.weight(resonance.getShells()[e - (experts - grown)]));
    }
    const int64_t rank = basis ? static_cast<int64_t>(basis->size()) / x.cols : 0;
    for (int64_t t = 0; t < x.rows; ++t) {
      std::vector<double> away(x.cols);
      double error = 0;
      for (int64_t i = 0; i < x.cols; ++i) {
        away[i] = static_cast<double>(x.row(t)[i]) - (*mean)[i];
        error += away[i] * away[i];
      }
      for (int64_t r = 0; r < rank; ++r) {
        double along = 0;
        for (int64_t i = 0; i < x.cols; ++i)
          along += (*basis)[r * x.cols + i] * away[i];
        error -= along * along;
      }
      out.row(t)[e] = shell && error > (*shell)[0] ? -std::numeric_limits<float>::infinity()
                                                   : static_cast<float>((*bias)[0] - error);
    }
  }
  frame.set(resonance.getResult(), std::move(out));
  return {};
}

} // namespace cortiq::cmf
