// The sampler of engine/decoder/sampler.ts, operation by operation, so that both draw the same bits. It must be compiled
// without contracting a * b + c into one rounding (-ffp-contract=off).

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gradus {

// The log-probability of the token is margin - log(total): JavaScript computes it, since two libraries' logarithms
// need not agree in the last bit.
struct Draw {
  int32_t token;
  double margin;
  double total;
  // Of the ids that were written down.
  int32_t kept;
};

class Sampler {
 public:
  // Writes the ids that it draws among into `kept`, where top-k cuts something and `room` is enough for them.
  Draw draw(const float* logits, size_t vocabulary, double temperature, int32_t topK, double topP, double u,
            int32_t* kept, size_t room);

 private:
  bool ranksBefore(int32_t a, int32_t b) const;
  int32_t fromNucleus(double total, double topP, double u, int32_t best);
  int32_t walk(double target, int32_t last, int32_t fallback) const;
  size_t candidates(double floor, int32_t last);
  double massDownTo(int32_t last) const;
  int32_t keptDownTo(int32_t last, int32_t* kept) const;
  int32_t smallestOfLargest(size_t count, bool byMass, double target);

  std::vector<double> weights_;
  std::vector<int32_t> order_;
};

}  // namespace gradus
