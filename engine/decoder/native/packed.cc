#include "packed.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace gradus {
namespace {

// Inputs whose weights of a panel, and rows of x beside them, fit the caches of a core.
constexpr int64_t INPUTS = 1024;

uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float ofBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The largest magnitude, NaN where there is one: as whole numbers magnitudes have their order, and NaNs are above them.
float mostOf(const float* values, int64_t count) {
  uint32_t most = 0;
  for (int64_t i = 0; i < count; i++) most = std::max(most, bitsOf(values[i]) & 0x7fffffffu);
  return ofBits(most);
}

// To the nearest, ties to even; a NaN stays one.
uint16_t toBfloat16(float value) {
  const uint32_t bits = bitsOf(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

float ofBfloat16(uint16_t value) { return ofBits(static_cast<uint32_t>(value) << 16); }

}  // namespace

const Kernels* const* kernelsHere(int& count) {
  static const Kernels* here[3];
  static const int found = [] {
    int n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) here[n++] = &avx512Kernels;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) here[n++] = &avx2Kernels;
#endif
    here[n++] = &portableKernels;
    return n;
  }();
  count = found;
  return here;
}

void multiplyPanel(const Kernels& kernels, const Packed& matrix, const uint8_t* data, int64_t panel, const float* x,
                   int64_t rows, float* y) {
  const AddPanel add = matrix.stored == Stored::bfloat16 ? kernels.bfloat16 : kernels.int8;
  const int64_t columns = std::min(PANEL, matrix.out - panel * PANEL);
  const uint8_t* weights = data + panel * matrix.panelBytes();
  const float* scales = matrix.stored == Stored::int8 ? matrix.scales(data) + panel * PANEL : nullptr;
  // The last panel may be wider than what is left of y.
  float aside[8 * PANEL];
  const int64_t atOnce = columns == PANEL ? rows : 8;
  for (int64_t row = 0; row < rows; row += atOnce) {
    const int64_t count = std::min(atOnce, rows - row);
    float* into = y + row * matrix.out + panel * PANEL;
    float* sums = columns == PANEL ? into : aside;
    const int64_t stride = columns == PANEL ? matrix.out : PANEL;
    for (int64_t r = 0; r < count; r++) std::fill_n(sums + r * stride, PANEL, 0.0f);
    for (int64_t from = 0; from < matrix.in; from += INPUTS) {
      add(x + row * matrix.in, count, matrix.in, from, std::min(from + INPUTS, matrix.in), weights, sums, stride);
    }
    for (int64_t r = 0; r < count; r++) {
      for (int64_t c = 0; c < columns; c++) {
        const float sum = sums[r * stride + c];
        into[r * matrix.out + c] = scales == nullptr ? sum : sum * scales[c];
      }
    }
  }
}

void packRows(const Packed& matrix, uint8_t* data, int64_t first, const float* weights, int64_t rows) {
  // Pairs whose places in a panel stay in a core's first cache while rows are written one after the other.
  constexpr int64_t NEAR = 32;
  const int64_t in = matrix.in;
  float* scales = const_cast<float*>(matrix.scales(data));
  for (int64_t begin = 0; begin < rows;) {
    const int64_t panel = (first + begin) / PANEL;
    const int64_t end = std::min(rows, (panel + 1) * PANEL - first);
    uint8_t* to = data + panel * matrix.panelBytes();
    float factors[PANEL];
    if (matrix.stored == Stored::int8) {
      for (int64_t row = begin; row < end; row++) {
        const float most = mostOf(weights + row * in, in);
        const float factor = 127.0f / most;
        // A row of zeros, or of numbers so small that no factor is a float, is zeros. One with a number that is not finite
        // is NaN as a whole: no int8 says which it was.
        const bool scaled = std::isfinite(most) && std::isfinite(factor);
        factors[row - begin] = scaled ? factor : 0.0f;
        scales[first + row] = scaled ? most / 127.0f : std::isfinite(most) ? 0.0f : std::nanf("");
      }
    }
    for (int64_t near = 0; near < matrix.pairs(); near += NEAR) {
      const int64_t stop = std::min(in, 2 * (near + NEAR));
      for (int64_t row = begin; row < end; row++) {
        const int64_t lane = (first + row) % PANEL;
        const float* from = weights + row * in;
        for (int64_t k = 2 * near; k < stop; k++) {
          if (matrix.stored == Stored::bfloat16) {
            reinterpret_cast<uint16_t*>(to)[(k / 2) * 2 * PANEL + 2 * lane + k % 2] = toBfloat16(from[k]);
          } else {
            const float rounded = std::nearbyint(from[k] * factors[row - begin]);
            reinterpret_cast<int8_t*>(to)[k * PANEL + lane] =
                static_cast<int8_t>(std::min(127.0f, std::max(-127.0f, rounded)));
          }
        }
      }
    }
    begin = end;
  }
}

void unpackRow(const Packed& matrix, const uint8_t* data, int64_t row, float* out) {
  const uint8_t* panel = data + row / PANEL * matrix.panelBytes();
  const int64_t lane = row % PANEL;
  for (int64_t k = 0; k < matrix.in; k++) {
    if (matrix.stored == Stored::bfloat16) {
      out[k] = ofBfloat16(reinterpret_cast<const uint16_t*>(panel)[(k / 2) * 2 * PANEL + 2 * lane + k % 2]);
    } else {
      out[k] = static_cast<float>(reinterpret_cast<const int8_t*>(panel)[k * PANEL + lane]) * matrix.scales(data)[row];
    }
  }
}

}  // namespace gradus
