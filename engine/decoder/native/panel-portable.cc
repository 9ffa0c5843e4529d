#include <cstring>

#include "panel.h"

namespace gradus {
namespace {

struct Portable {
  using Floats = float;
  static constexpr int width = 1;
  static constexpr int vectors = 16;
  static constexpr int rows = 2;

  static float load(const float* from) { return *from; }
  static void store(float* to, float value) { *to = value; }
  static float same(float value) { return value; }
  static float multiplyAdd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static float ofBits(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  static uint32_t pair(const uint8_t* from) {
    uint16_t two[2];
    std::memcpy(two, from, sizeof two);
    return static_cast<uint32_t>(two[0]) | static_cast<uint32_t>(two[1]) << 16;
  }
  static float even(const uint8_t* from) { return ofBits(pair(from) << 16); }
  static float odd(const uint8_t* from) { return ofBits(pair(from) & 0xffff0000u); }
  static float bytes(const uint8_t* from) { return static_cast<float>(static_cast<int8_t>(*from)); }
};

}  // namespace

const Kernels portableKernels{"portable", addPanel<Portable, Stored::bfloat16>, addPanel<Portable, Stored::int8>};

}  // namespace gradus
