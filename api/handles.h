#pragma once

// What stands behind the handles of cortiq.h.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/cortiq.h"
#include "runtime/session/session.h"
#include "runtime/text/text_section.h"
#include "runtime/vulkan/gpu.h"

struct cortiq_model {
  std::shared_ptr<const cortiq::runtime::Model> model;
  /// Shared with sessions, which outlive the handle. Null: the model has no tokenizer, or none that this build reads.
  std::shared_ptr<const cortiq::runtime::text::TextModel> text;
  std::string text_absent;                              ///< why; empty when there is one
  std::shared_ptr<const cortiq::runtime::GpuModel> gpu; ///< null: the CPU runs it
  std::string device, device_note;
  bool cpu_fallback = false;
};

struct cortiq_session {
  std::shared_ptr<const cortiq::runtime::Model> model;
  std::shared_ptr<const cortiq::runtime::text::TextModel> text;
  std::unique_ptr<cortiq::runtime::Session> session;
  std::vector<uint32_t> held; ///< the ids that the session holds
  std::atomic<bool> busy = false, cancelled = false;
};
