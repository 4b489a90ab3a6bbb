// Sums over teams of lanes. A team's lanes are added one after the other, in their order: any number of them adds up that way
// in one register (matmul_tile_i8.glsl), and memory that the workgroup shares takes no longer for it than exchanges do.

// Values that are summed at once, and where a lane leaves one; teams stand apart by a place more, in other banks.
const uint kMostAtOnce = (2047 + kLocal) / kLocal;
const uint kAtOnce = kTeamValues < kMostAtOnce ? kTeamValues : kMostAtOnce;
const uint kTeams = kLocal / kLanes;
shared float lane_sums[kAtOnce * kTeams * (kLanes + 1)];

void leave_part(float part, uint index) {
  lane_sums[(index * kTeams + local_index() / kLanes) * (kLanes + 1) + local_index() % kLanes] = part;
}

// The sum of a team's parts of value `index`, behind a barrier.
float team_sum(uint team, uint index) {
  uint first = (index * kTeams + team) * (kLanes + 1);
  float sum = 0.0;
  [[unroll]] for (uint lane = 0; lane < kLanes; ++lane)
    sum += lane_sums[first + lane];
  return sum;
}
