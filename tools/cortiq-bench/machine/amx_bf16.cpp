#include "tools/cortiq-bench/machine/amx_tiles.h"
#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

uint64_t run(uint64_t rounds) {
  return run_tiles(rounds, [] {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  });
}

} // namespace

const Unit kAmxBf16 = {"amx bf16", "bf16", "", {"amx_tile", "amx_bf16"}, 4 * 16 * 16 * 32 * 2, run};

} // namespace cortiq::bench
