#pragma once

// The skills and masks of a model, whatever container they came from.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cortiq::formats {

/// How near a prompt is to what a skill was made for: an affine subspace of the residual stream behind `layer`.
struct SkillDescriptor {
  bool unit = false;        ///< the mean is brought to length 1 first (metric mse_unit)
  uint32_t layer = 0;       ///< the residual stream is read behind this layer
  uint32_t rank = 0;        ///< rows of `basis`
  std::vector<float> mean;  ///< one value a feature
  std::vector<float> basis; ///< rank x features, orthonormal rows
  float err_mean = 0, err_std = 1;

  bool operator==(const SkillDescriptor&) const = default;
};

struct OverlaySkill {
  std::string id;
  std::string name; ///< for people; may be empty
  std::string task; ///< the mask that belongs to the skill; may be empty
  std::optional<SkillDescriptor> descriptor;

  bool operator==(const OverlaySkill&) const = default;
};

/// Bits of one mask, lowest first, 1 = active; each row starts at a whole byte.
struct OverlayMask {
  std::string name;
  bool fallback = false; ///< priority Fallback: applies when none is named
  uint32_t layers = 0;
  uint32_t ffn_rows = 0, ffn_width = 0; ///< rows: layers, or layers * passes
  uint32_t heads = 0;
  uint32_t expert_count = 0; ///< 0: no expert is excluded
  std::vector<uint8_t> ffn, head, gates, experts;

  /// Whether a neuron, head, layer or expert is active. What lies beyond the mask's sizes is. `layer` counts over all
  /// passes of a looped model; heads and experts are masked in the first pass only.
  bool neuron(uint64_t layer, uint64_t index) const;
  bool query_head(uint64_t layer, uint64_t index) const;
  bool gate(uint64_t layer) const;
  bool expert(uint64_t layer, uint64_t index) const;
  bool operator==(const OverlayMask&) const = default;
};

/// Calibration of the choice among skills; without it a fixed threshold decides.
struct RoutingCalibration {
  double temperature = 1, theta = 1;

  bool operator==(const RoutingCalibration&) const = default;
};

struct OverlayCatalog {
  std::vector<OverlaySkill> skills;
  std::vector<OverlayMask> masks;
  std::optional<RoutingCalibration> calibration;
  /// The mask that the model was compiled for, which therefore is no choice any more. It still is among the masks where
  /// the choice of experts has to ask it, and then always in force.
  std::string fixed_task;

  bool empty() const { return skills.empty() && masks.empty() && fixed_task.empty(); }
  std::optional<uint32_t> find_skill(std::string_view id) const;
  std::optional<uint32_t> find_mask(std::string_view name) const;
  /// The mask that cannot be switched off, if there is one.
  std::optional<uint32_t> fixed_mask() const { return fixed_task.empty() ? std::nullopt : find_mask(fixed_task); }
  /// The mask that applies when none is named: the first one of priority Fallback, else the first.
  std::optional<uint32_t> default_mask() const;

  bool operator==(const OverlayCatalog&) const = default;
};

} // namespace cortiq::formats
