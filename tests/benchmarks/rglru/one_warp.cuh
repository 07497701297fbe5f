// The scan over the groups of a tile by one warp, a lane for each channel: an eighth of the instructions that shuffles
// in every warp take, for a chain that is no longer. Takes the place of what scan.cuh says under the same names.
#pragma once

// `carry[0]` is the state before the tile, of the channel of the lane's number, and becomes that behind it.
__device__ inline void scan_groups(Exchange& exchange, const float (&factor)[2], const float (&value)[2],
                                   float (&carry)[OF_A_WARP], float (&before)[2]) {
  const int first = threadIdx.x % PAIRS * 2, group = threadIdx.x / PAIRS;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    exchange.factor[first + c][group] = factor[c];
    exchange.value[first + c][group] = value[c];
  }
  __syncthreads();
  if (threadIdx.x < 32) {
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
      const float f = exchange.factor[threadIdx.x][g], v = exchange.value[threadIdx.x][g];
      exchange.value[threadIdx.x][g] = carry[0];
      carry[0] = f * carry[0] + v;
    }
  }
  __syncthreads();
#pragma unroll
  for (int c = 0; c < 2; ++c) before[c] = exchange.value[first + c][group];
}

__device__ inline void load_carry(float (&carry)[OF_A_WARP], const float* start, const Place& place, int width) {
  const int channel = place.channel - threadIdx.x % PAIRS * 2 + threadIdx.x % 32;
  carry[0] = start != nullptr && channel < width ? start[place.sequence * width + channel] : 0.0f;
}
