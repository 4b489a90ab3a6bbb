#include "tools/cortiq-bench/machine/amx_tiles.h"
#include "tools/cortiq-bench/machine/unit.h"

namespace cortiq::bench {
namespace {

uint64_t run(uint64_t rounds) {
  return run_tiles(rounds, [] {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  });
}

} // namespace

const Unit kAmxInt8 = {"amx int8", "int8", "amx", {"amx_tile", "amx_int8"}, 4 * 16 * 16 * 64 * 2, run};

} // namespace cortiq::bench
