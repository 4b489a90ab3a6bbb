#include "runtime/ops/attention_tiles.h"

#include <string>

#include "runtime/cpu/features.h"
#include "runtime/cpu/tile_config.h"
#include "runtime/cpu/tile_permission.h"

#if defined(__x86_64__)
#include "runtime/ops/attention_tiles-inl.h"

HWY_PUSH_ATTRIBUTES("avx512f,amx-tile,amx-bf16")
namespace cortiq::runtime {
namespace {

/// Assembly, for GCC's intrinsics take no number of a tile from a template.
struct AmxTiles {
  static void begin() { __asm__ volatile("ldtilecfg %0" : : "m"(kTileConfig)); }
  static void end() { __asm__ volatile("tilerelease"); }
  template <int kTile>
  static void zero() {
    __asm__ volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  static void load(const uint8_t* from, uint64_t stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void store(uint8_t* to, uint64_t stride) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kSums, int kLeft, int kRight>
  static void dot() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kLeft), "i"(kRight));
  }
};

} // namespace

void attend_on_tiles(const AttentionTask& task, uint8_t* scratch) {
  tiled::attend<AmxTiles>(task, scratch);
}

} // namespace cortiq::runtime
HWY_POP_ATTRIBUTES

namespace cortiq::runtime {

uint64_t attention_tiles_scratch_bytes(uint64_t k_dim, uint64_t v_stride) {
  return tiled::Room(nullptr, k_dim, v_stride).bytes;
}

bool attention_tiles_usable() {
  const std::string needed[] = {"avx512f", "avx512bw", "avx512dq", "avx512_bf16", "amx_tile", "amx_bf16"};
  return check_features(needed, read_cpu_state()).ok() && request_tile_permission(needed).ok();
}

} // namespace cortiq::runtime

#else

namespace cortiq::runtime {

uint64_t attention_tiles_scratch_bytes(uint64_t, uint64_t) {
  return 0;
}

bool attention_tiles_usable() {
  return false;
}

void attend_on_tiles(const AttentionTask&, uint8_t*) {}

} // namespace cortiq::runtime
#endif
