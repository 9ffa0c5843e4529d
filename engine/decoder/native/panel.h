// The product with one panel, for the vectors `L` of a processor. Included once a processor, by files that include nothing
// of the standard library: a function of it that is compiled for one processor might be taken by the linker for all.

#pragma once

#include "packed.h"

namespace gradus {
namespace {

constexpr int64_t PAIR = 2 * PANEL;
// Bytes by which memory is asked for before it is read: a processor by itself looks less far.
constexpr int64_t AHEAD = 4096;

// R rows at once; the sums of L::vectors vectors of outputs of each are in registers.
template <class L, Stored stored, int R>
void addTile(const float* x, int64_t in, int64_t from, int64_t to, const uint8_t* panel, float* sums, int64_t stride) {
  constexpr int V = L::vectors;
  constexpr int64_t bytes = stored == Stored::bfloat16 ? 2 : 1;
  for (int64_t part = 0; part < PANEL; part += V * L::width) {
    typename L::Floats sum[R][V];
    for (int r = 0; r < R; r++) {
      for (int v = 0; v < V; v++) sum[r][v] = L::load(sums + r * stride + part + v * L::width);
    }
    for (int64_t k = from; k < to; k++) {
      const uint8_t* pair = panel + (k / 2) * PAIR * bytes;
      if (k % 2 == 0) {
        for (int64_t line = 0; line < PAIR * bytes; line += 64) __builtin_prefetch(pair + AHEAD + line);
      }
      typename L::Floats w[V];
      for (int v = 0; v < V; v++) {
        const int64_t column = part + v * L::width;
        if (stored == Stored::bfloat16) {
          w[v] = k % 2 == 0 ? L::even(pair + column * 4) : L::odd(pair + column * 4);
        } else {
          w[v] = L::bytes(pair + (k % 2) * PANEL + column);
        }
      }
      for (int r = 0; r < R; r++) {
        const typename L::Floats value = L::same(x[r * in + k]);
        for (int v = 0; v < V; v++) sum[r][v] = L::multiplyAdd(value, w[v], sum[r][v]);
      }
    }
    for (int r = 0; r < R; r++) {
      for (int v = 0; v < V; v++) L::store(sums + r * stride + part + v * L::width, sum[r][v]);
    }
  }
}

template <class L, Stored stored, int R>
void addRows(int rows, const float* x, int64_t in, int64_t from, int64_t to, const uint8_t* panel, float* sums,
             int64_t stride) {
  if (rows == R) {
    addTile<L, stored, R>(x, in, from, to, panel, sums, stride);
  } else if constexpr (R > 1) {
    addRows<L, stored, R - 1>(rows, x, in, from, to, panel, sums, stride);
  }
}

// In tiles of about as many rows each.
template <class L, Stored stored>
void addPanel(const float* x, int64_t rows, int64_t in, int64_t from, int64_t to, const uint8_t* panel, float* sums,
              int64_t stride) {
  const int64_t tiles = (rows + L::rows - 1) / L::rows;
  const int64_t most = (rows + tiles - 1) / tiles;
  for (int64_t row = 0; row < rows; row += most) {
    const int count = static_cast<int>(rows - row < most ? rows - row : most);
    addRows<L, stored, L::rows>(count, x + row * in, in, from, to, panel, sums + row * stride, stride);
  }
}

}  // namespace
}  // namespace gradus
