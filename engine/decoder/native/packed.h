// Matrices of a model with weights of fewer bits than 32, and their products with rows of float32.
//
// A matrix [out, in] lies in panels of 64 outputs, and in a panel the weights of two inputs beside each other, so that each
// lane of a vector is one output. Every output is summed over the inputs from the first to the last, in float32, by fused
// multiplication and addition. So its bits depend neither on the processor nor on how rows and panels are cut.
//
// bfloat16: pairs of [64][2] uint16. int8: pairs of [2][64], behind all panels a float32 for each output, which its sum is
// multiplied by.

#pragma once

#include <cstdint>

namespace gradus {

constexpr int64_t PANEL = 64;

enum class Stored : int64_t { bfloat16 = 0, int8 = 1 };

struct Packed {
  Stored stored;
  int64_t out;
  int64_t in;

  int64_t panels() const { return (out + PANEL - 1) / PANEL; }
  int64_t pairs() const { return (in + 1) / 2; }
  int64_t panelBytes() const { return pairs() * 2 * PANEL * (stored == Stored::bfloat16 ? 2 : 1); }
  int64_t bytes() const { return panels() * (panelBytes() + (stored == Stored::int8 ? PANEL * 4 : 0)); }
  const float* scales(const uint8_t* data) const {
    return reinterpret_cast<const float*>(data + panels() * panelBytes());
  }
};

// Adds x[rows, in] by inputs [from, to) of a panel to sums[rows, stride], 64 of each row; `from` is even.
using AddPanel = void (*)(const float* x, int64_t rows, int64_t in, int64_t from, int64_t to, const uint8_t* panel,
                          float* sums, int64_t stride);

// Of one kind of processor.
struct Kernels {
  const char* name;
  AddPanel bfloat16;
  AddPanel int8;
};

extern const Kernels portableKernels;
#if defined(__x86_64__)
extern const Kernels avx2Kernels;
extern const Kernels avx512Kernels;
#endif

// Those that run here, the fastest first; `count` gets how many.
const Kernels* const* kernelsHere(int& count);

// y[rows, out] of one panel = x[rows, in] · its weights.
void multiplyPanel(const Kernels& kernels, const Packed& matrix, const uint8_t* data, int64_t panel, const float* x,
                   int64_t rows, float* y);

// Rounds rows [rows, in] of float32 into a matrix, from its row `first` on: to the nearest, ties to even.
void packRows(const Packed& matrix, uint8_t* data, int64_t first, const float* weights, int64_t rows);

// One row [in] of a matrix as float32.
void unpackRow(const Packed& matrix, const uint8_t* data, int64_t row, float* out);

}  // namespace gradus
