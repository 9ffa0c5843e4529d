#include "sampler.h"

#include <cstring>
#include <utility>

// Every vector width gives the same bits, because sums are split into eight lanes in the source.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WIDEST __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define WIDEST
#endif

namespace gradus {
namespace {

constexpr int LANES = 8;
constexpr int32_t NONE = -1;
constexpr int MOST_REFUSALS = 16;

// Reduces to 2^n · e^r with |r| ≤ ln 2 / 2, and e^r by its Taylor polynomial of degree 13: below 1 ulp of error.
// `x` must not be positive.
inline double exponential(double x) {
  constexpr double LOG2_E = 1.4426950408889634;
  constexpr double LN2_HIGH = 0.6931471803691238;
  constexpr double LN2_LOW = 1.9082149292705877e-10;
  // Adding it rounds to a whole number, in the low bits.
  constexpr double SHIFT = 6755399441055744;
  constexpr double LEAST = -708;
  const double bounded = x < LEAST ? LEAST : x;
  const double shifted = bounded * LOG2_E + SHIFT;
  const double n = shifted - SHIFT;
  const double r = (bounded - n * LN2_HIGH) - n * LN2_LOW;
  double p = 1.6059043836821613e-10;
  p = p * r + 2.08767569878681e-9;
  p = p * r + 2.505210838544172e-8;
  p = p * r + 2.755731922398589e-7;
  p = p * r + 2.7557319223985893e-6;
  p = p * r + 2.48015873015873e-5;
  p = p * r + 1.984126984126984e-4;
  p = p * r + 1.3888888888888889e-3;
  p = p * r + 8.333333333333333e-3;
  p = p * r + 4.1666666666666664e-2;
  p = p * r + 1.6666666666666666e-1;
  p = p * r + 0.5;
  p = p * r + 1;
  p = p * r + 1;
  uint64_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  const uint64_t scaleBits = (bits + 1023) << 52;
  double scale;
  std::memcpy(&scale, &scaleBits, sizeof scale);
  return x < LEAST ? 0 : p * scale;
}

WIDEST float largest(const float* logits, size_t count) {
  float lanes[LANES];
  for (int lane = 0; lane < LANES; lane++) lanes[lane] = logits[0];
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    for (int lane = 0; lane < LANES; lane++) {
      lanes[lane] = logits[i + lane] > lanes[lane] ? logits[i + lane] : lanes[lane];
    }
  }
  float max = lanes[0];
  for (int lane = 1; lane < LANES; lane++) max = lanes[lane] > max ? lanes[lane] : max;
  for (; i < count; i++) max = logits[i] > max ? logits[i] : max;
  return max;
}

inline double sum(const double* lanes) {
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

WIDEST double exponentials(const float* logits, size_t count, double max, double temperature, double* weights) {
  for (size_t i = 0; i < count; i++) weights[i] = exponential((logits[i] - max) / temperature);
  double lanes[LANES] = {};
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    for (int lane = 0; lane < LANES; lane++) lanes[lane] += weights[i + lane];
  }
  for (int lane = 0; i < count; i++, lane++) lanes[lane] += weights[i];
  return sum(lanes);
}

// Weights above that of the token, and equal ones before it: eight lanes by index, as in exponentials.
WIDEST double massBefore(const double* weights, size_t count, size_t token) {
  const double own = weights[token];
  double lanes[LANES] = {};
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    for (int lane = 0; lane < LANES; lane++) {
      const double weight = weights[i + lane];
      const bool before = weight > own || (weight == own && i + lane < token);
      lanes[lane] += before ? weight : 0.0;
    }
  }
  for (int lane = 0; i < count; i++, lane++) {
    const bool before = weights[i] > own || (weights[i] == own && i < token);
    lanes[lane] += before ? weights[i] : 0.0;
  }
  return sum(lanes);
}

double nextUniform(double u, int index) {
  if (index == 0) return u;
  uint32_t x = static_cast<uint32_t>(u * 4294967296.0) + static_cast<uint32_t>(index) * 0x9e3779b9u;
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return (x ^ (x >> 16)) / 4294967296.0;
}

}  // namespace

Draw Sampler::draw(const float* logits, size_t vocabulary, double temperature, int32_t topK, double topP, double u,
                   int32_t* ids, size_t room) {
  weights_.resize(vocabulary);
  order_.resize(vocabulary);
  const float max = largest(logits, vocabulary);
  int32_t best = 0;
  while (logits[best] != max && static_cast<size_t>(best) + 1 < vocabulary) best++;
  if (temperature == 0) return {best, 0, 1, 0};
  const double total = exponentials(logits, vocabulary, max, temperature, weights_.data());
  if (topK == 0 && topP < 1) {
    const int32_t token = fromNucleus(total, topP, u, best);
    return {token, (logits[token] - static_cast<double>(max)) / temperature, total, 0};
  }
  int32_t last = NONE;
  double kept = total;
  if (topK > 0 && static_cast<size_t>(topK) < vocabulary) {
    last = smallestOfLargest(candidates(0, NONE), false, topK);
    kept = massDownTo(last);
  }
  if (topP < 1) {
    const double floor = ((1 - topP) * kept) / static_cast<double>(vocabulary);
    last = smallestOfLargest(candidates(floor, last), true, topP * kept);
    kept = massDownTo(last);
  }
  const int32_t token = walk(u * kept, last, best);
  const bool written = last != NONE && topK > 0 && static_cast<size_t>(topK) <= room;
  return {token, (logits[token] - static_cast<double>(max)) / temperature, kept, written ? keptDownTo(last, ids) : 0};
}

int32_t Sampler::fromNucleus(double total, double topP, double u, int32_t best) {
  const double target = topP * total;
  for (int refusals = 0; refusals < MOST_REFUSALS; refusals++) {
    const int32_t token = walk(nextUniform(u, refusals) * total, NONE, best);
    if (token == best || massBefore(weights_.data(), weights_.size(), static_cast<size_t>(token)) < target) {
      return token;
    }
  }
  const double floor = ((1 - topP) * total) / static_cast<double>(weights_.size());
  const int32_t last = smallestOfLargest(candidates(floor, NONE), true, target);
  return walk(nextUniform(u, MOST_REFUSALS) * massDownTo(last), last, best);
}

bool Sampler::ranksBefore(int32_t a, int32_t b) const {
  const double difference = weights_[a] - weights_[b];
  return difference > 0 || (difference == 0 && a < b);
}

int32_t Sampler::walk(double target, int32_t last, int32_t fallback) const {
  double sum = 0;
  int32_t token = fallback;
  const auto count = static_cast<int32_t>(weights_.size());
  for (int32_t i = 0; i < count; i++) {
    if (weights_[i] == 0 || (last != NONE && ranksBefore(last, i))) continue;
    sum += weights_[i];
    token = i;
    if (target < sum) break;
  }
  return token;
}

size_t Sampler::candidates(double floor, int32_t last) {
  size_t found = 0;
  const auto count = static_cast<int32_t>(weights_.size());
  for (int32_t i = 0; i < count; i++) {
    if (weights_[i] >= floor && (last == NONE || !ranksBefore(last, i))) order_[found++] = i;
  }
  return found;
}

// The tokens of any probability that rank no lower than `last`; none where those are all.
int32_t Sampler::keptDownTo(int32_t last, int32_t* kept) const {
  int32_t found = 0;
  bool cut = false;
  const auto count = static_cast<int32_t>(weights_.size());
  for (int32_t i = 0; i < count; i++) {
    if (weights_[i] == 0) continue;
    if (ranksBefore(last, i)) {
      cut = true;
    } else {
      kept[found++] = i;
    }
  }
  return cut ? found : 0;
}

double Sampler::massDownTo(int32_t last) const {
  double sum = 0;
  const auto count = static_cast<int32_t>(weights_.size());
  for (int32_t i = 0; i < count; i++) {
    if (!ranksBefore(last, i)) sum += weights_[i];
  }
  return sum;
}

int32_t Sampler::smallestOfLargest(size_t count, bool byMass, double target) {
  const auto of = [&](int32_t token) { return byMass ? weights_[token] : 1.0; };
  size_t low = 0;
  size_t high = count;
  double before = 0;
  int32_t answer = order_[0];
  while (low < high) {
    const size_t middle = (low + high) >> 1;
    const int32_t pivot = order_[middle];
    std::swap(order_[middle], order_[high - 1]);
    size_t split = low;
    double mass = 0;
    for (size_t i = low; i < high - 1; i++) {
      const int32_t token = order_[i];
      if (!ranksBefore(token, pivot)) continue;
      std::swap(order_[i], order_[split++]);
      mass += of(token);
    }
    std::swap(order_[high - 1], order_[split]);
    if (split > low && before + mass >= target) {
      high = split;
      continue;
    }
    answer = pivot;
    before += mass + of(pivot);
    if (before >= target) break;
    low = split + 1;
  }
  return answer;
}

}  // namespace gradus
