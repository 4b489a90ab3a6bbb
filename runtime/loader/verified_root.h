#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <flatbuffers/flatbuffers.h>

#include "formats/status.h"

namespace cortiq::runtime {

/// The root of a FlatBuffer whose every offset was checked; `what` names it in the refusal.
template <class Table>
StatusOr<const Table*> verified_root(std::span<const uint8_t> bytes, const char* what) {
  constexpr unsigned kDepth = 16;
  constexpr unsigned kTables = 1 << 24;
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), kDepth, kTables);
  if (bytes.size() < 16 || bytes.size() > FLATBUFFERS_MAX_BUFFER_SIZE || !verifier.VerifyBuffer<Table>(nullptr))
    return invalid(std::string("its ") + what + " is damaged (the FlatBuffers verifier refuses it)");
  return flatbuffers::GetRoot<Table>(bytes.data());
}

} // namespace cortiq::runtime
