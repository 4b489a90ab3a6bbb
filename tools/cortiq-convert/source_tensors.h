#pragma once

// The tensors of a model being put together: taken from the source by name, checked, and given canonical names.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tools/cortiq-convert/layer_sizes.h"
#include "tools/cortiq-convert/source_model.h"

namespace cortiq::convert {

/// Rows of one tensor of the source.
struct Slice {
  uint64_t first = 0;     ///< row
  uint64_t file_rows = 0; ///< rows of the whole tensor; 0: as many as the result has
  IndexOrder order = nullptr;
};

class SourceTensors {
public:
  /// `find` looks a tensor up by its name in the source.
  using Find = std::function<const formats::Tensor*(const std::string&)>;
  explicit SourceTensors(Find find) : find_(std::move(find)) {}

  bool has(const std::string& name) const { return find_(name) != nullptr; }
  bool made(const std::string& canonical) const { return names_.contains(canonical); }
  bool used(const formats::Tensor& tensor) const { return used_.contains(&tensor); }

  /// The tensor, checked and marked as used.
  StatusOr<const formats::Tensor*> take(const std::string& name, const std::vector<uint64_t>& shape);

  // What these add may be changed until the next call.
  /// A tensor whose shape is that of the result.
  StatusOr<SourceTensor*> add(const std::string& name, std::string canonical, std::vector<uint64_t> shape);
  /// Rows of a tensor that has the shape of the result but for its rows.
  StatusOr<SourceTensor*> add_slice(const std::string& name, std::string canonical, std::vector<uint64_t> shape,
                                    const Slice& slice);
  /// A tensor that the source has in `file_shape`, or rows of it from `first_row` on.
  StatusOr<SourceTensor*> add_shaped(const std::string& name, std::string canonical, std::vector<uint64_t> shape,
                                     const std::vector<uint64_t>& file_shape, uint64_t first_row = 0);
  /// What was put together already.
  void add_made(SourceTensor tensor);

  std::vector<SourceTensor> release() { return std::move(tensors_); }

private:
  Find find_;
  std::vector<SourceTensor> tensors_;
  std::set<const formats::Tensor*> used_;
  std::set<std::string> names_;
};

/// CMF has no factor on what a block adds to the stream (Granite): it goes into the block's last matrix.
void scale_residual(SourceTensor& tensor, double scale);

// Rows of the fused inputs of a gated delta block (CMF specification 3.1): for each key head its queries, keys, values
// and gates z; and its b, then its a.
IndexOrder grouped_qkv(const DeltaSizes& sizes);
IndexOrder grouped_z(const DeltaSizes& sizes);
IndexOrder grouped_a(const DeltaSizes& sizes);
IndexOrder grouped_b(const DeltaSizes& sizes);
uint64_t grouped_rows(const DeltaSizes& sizes); ///< of queries, keys, values and gates together

} // namespace cortiq::convert
