#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f"))), apply_to = function)
#else
#pragma GCC target("avx512f")
#endif
#if !defined(__clang__)
// GCC 12 says so of its own header.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "panel.h"

namespace gradus {
namespace {

struct Avx512 {
  using Floats = __m512;
  static constexpr int width = 16;
  static constexpr int vectors = 4;
  static constexpr int rows = 6;

  static Floats load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Floats value) { _mm512_storeu_ps(to, value); }
  static Floats same(float value) { return _mm512_set1_ps(value); }
  static Floats multiplyAdd(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static __m512i pairs(const uint8_t* from) { return _mm512_loadu_si512(from); }
  static Floats even(const uint8_t* from) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs(from), 16)); }
  static Floats odd(const uint8_t* from) {
    return _mm512_castsi512_ps(_mm512_and_si512(pairs(from), _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static Floats bytes(const uint8_t* from) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
};

}  // namespace

const Kernels avx512Kernels{"avx512", addPanel<Avx512, Stored::bfloat16>, addPanel<Avx512, Stored::int8>};

}  // namespace gradus
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
