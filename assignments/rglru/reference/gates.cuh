// The gates of the RG-LRU in few instructions: approximations that flush subnormal numbers, with nothing around them.
#pragma once

__device__ inline float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float reciprocal_root(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

constexpr float LOG2_E = 1.44269504f, SMALLEST = 1.17549435e-38f;

__device__ inline float sigmoid(float x) { return reciprocal(1.0f + power_of_2(-LOG2_E * x)); }

// log(1 + e^x) where e^x may be far below 1.
__device__ inline float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

// 1 - e^-2d for 0 <= d <= 1/4, where the difference would lose digits: a polynomial through the Chebyshev nodes, off by
// at most 8.5e-8 of the result.
__device__ inline float near_one(float d) {
  float sum = 0.217051602f;
  sum = sum * d - 0.656211368f;
  sum = sum * d + 1.33241542f;
  sum = sum * d - 1.99997153f;
  sum = sum * d + 1.99999986f;
  return sum * d;
}

// The recurrence gate of one element.
struct Decay {
  float r, d, a;  // gate, -log(a), factor
  float s, inverse;  // sqrt(1 - a^2) and its reciprocal; where a is 1, 0 and a finite number

  __device__ Decay(float ga, float rate) {
    r = sigmoid(ga);
    d = rate * r;
    a = power_of_2(-LOG2_E * d);
    const float square = d > 0.25f ? 1.0f - a * a : near_one(d);
    inverse = reciprocal_root(fmaxf(square, SMALLEST));
    s = square * inverse;
  }
};
