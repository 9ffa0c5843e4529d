#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#include <immintrin.h>

#include "panel.h"

namespace gradus {
namespace {

struct Avx2 {
  using Floats = __m256;
  static constexpr int width = 8;
  static constexpr int vectors = 4;
  static constexpr int rows = 2;

  static Floats load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Floats value) { _mm256_storeu_ps(to, value); }
  static Floats same(float value) { return _mm256_set1_ps(value); }
  static Floats multiplyAdd(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static __m256i pairs(const uint8_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
  static Floats even(const uint8_t* from) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs(from), 16)); }
  static Floats odd(const uint8_t* from) {
    return _mm256_castsi256_ps(_mm256_and_si256(pairs(from), _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static Floats bytes(const uint8_t* from) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
};

}  // namespace

const Kernels avx2Kernels{"avx2", addPanel<Avx2, Stored::bfloat16>, addPanel<Avx2, Stored::int8>};

}  // namespace gradus
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
