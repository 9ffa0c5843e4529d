// Runs the decoder's graph with onnxruntime's C API on memory that belongs to JavaScript: caches are updated in place,
// logits are sampled where they lie, and nothing is copied out. The library is the one that onnxruntime-node brings.
//
// All calls are synchronous and must come from the thread that opened the session: a decoder's thread has nothing else
// to do. Shapes: L layers, K key-value heads, D head size, V vocabulary, n slots in use, C capacity of a block, G lanes.

#include <dlfcn.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <node_api.h>
#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "arguments.h"
#include "onnxruntime_c_api.h"
#include "packed.h"
#include "packed-operators.h"
#include "sampler.h"

namespace {

const OrtApi* api = nullptr;
OrtEnv* environment = nullptr;
OrtMemoryInfo* cpu = nullptr;
// Of the operators on packed weights.
OrtCustomOpDomain* operators = nullptr;
// The library has one list of domains in a process. Each session reads it while it is made, and the first one with a domain
// of ours adds to it, without a lock of its own: that one is made alone.
std::shared_mutex domains;
std::atomic<bool> knowsOperators{false};
std::mutex start;

using gradus::Failure;
using gradus::Packed;
using gradus::Stored;
using gradus::View;
using gradus::check;
using gradus::doubles;
using gradus::extents;
using gradus::field;
using gradus::floats;
using gradus::guarded;
using gradus::integer;
using gradus::integers;
using gradus::text;
using gradus::view;

void check(OrtStatus* status) {
  if (status == nullptr) return;
  Failure failure{api->GetErrorMessage(status)};
  api->ReleaseStatus(status);
  throw failure;
}

struct ReleaseValue {
  void operator()(OrtValue* value) const { api->ReleaseValue(value); }
};
using Value = std::unique_ptr<OrtValue, ReleaseValue>;

Value tensor(void* data, size_t bytes, const std::vector<int64_t>& shape, ONNXTensorElementDataType type) {
  OrtValue* value = nullptr;
  check(api->CreateTensorWithDataAsOrtValue(cpu, data, bytes, shape.data(), shape.size(), type, &value));
  return Value(value);
}

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

Value floatTensor(float* data, const std::vector<int64_t>& shape) {
  return tensor(data, static_cast<size_t>(elements(shape)) * sizeof(float), shape, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
}

Value integerTensor(int32_t* data, const std::vector<int64_t>& shape) {
  return tensor(data, static_cast<size_t>(elements(shape)) * sizeof(int32_t), shape, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32);
}

// The weights of a model in the layout of the kernels, once for all sessions that are opened with them.
struct PackedWeights {
  OrtPrepackedWeightsContainer* container = nullptr;

  PackedWeights() { check(api->CreatePrepackedWeightsContainer(&container)); }
  PackedWeights(const PackedWeights&) = delete;
  ~PackedWeights() { api->ReleasePrepackedWeightsContainer(container); }
};

struct Session {
  OrtSession* session = nullptr;
  // Held, because the session reads weights that it has not packed from where they lie.
  napi_ref weights = nullptr;
  std::vector<Value> initializers;
  std::shared_ptr<PackedWeights> packed;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t headSize = 0;
  int64_t vocabulary = 0;
  // Sequences that a graph for pieces of several tokens is for; 0 for one that decodes.
  int64_t lanes = 0;
  std::vector<std::string> inputNames;
  std::vector<std::string> outputNames;
  // What a run is given that no array of JavaScript holds.
  int32_t total = 0;
  float nothing = 0;

  ~Session() {
    if (session != nullptr) api->ReleaseSession(session);
  }

  void run(const std::vector<Value>& inputs, const std::vector<Value>& outputs) const {
    std::vector<const char*> in;
    std::vector<const char*> out;
    std::vector<const OrtValue*> given;
    std::vector<OrtValue*> filled;
    for (const auto& name : inputNames) in.push_back(name.c_str());
    for (const auto& name : outputNames) out.push_back(name.c_str());
    for (const auto& value : inputs) given.push_back(value.get());
    for (const auto& value : outputs) filled.push_back(value.get());
    check(api->Run(session, nullptr, in.data(), given.data(), in.size(), out.data(), out.size(), filled.data()));
  }
};

// A block's memory as tensors, for as long as the number of its slots in use stays the same.
struct Binding {
  Session* session = nullptr;
  std::vector<napi_ref> held;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  View<float> logits;
  size_t count = 0;
  int32_t total = 0;
};

Session* sessionOf(napi_env env, napi_value value) {
  void* pointer;
  check(napi_get_value_external(env, value, &pointer), "session");
  auto* session = static_cast<Session*>(pointer);
  if (session->session == nullptr) throw Failure{"the session is closed"};
  return session;
}

void initialize(const std::string& library) {
  std::lock_guard<std::mutex> lock(start);
  if (api != nullptr) return;
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw Failure{dlerror()};
  auto base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
  if (base == nullptr) throw Failure{library + " is not onnxruntime"};
  const OrtApi* found = base()->GetApi(ORT_API_VERSION);
  if (found == nullptr) throw Failure{library + " is older than the headers of this addon"};
  api = found;
  check(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "gradus", &environment));
  check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &cpu));
  check(gradus::createOperators(api, &operators));
}

// The C library keeps what is freed between other blocks, and matrices of the next weights need not fit there.
void giveBackFreed() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// In bytes.
const size_t MANY_WEIGHTS = size_t{1} << 28;

struct OptionsGuard {
  OrtSessionOptions* options = nullptr;
  ~OptionsGuard() {
    if (options != nullptr) api->ReleaseSessionOptions(options);
  }
};

// Draws from the rows of `logits` where it is wanted.
struct Draws {
  View<uint8_t> wanted;
  View<double> temperature, topP, u, margin, total;
  View<int32_t> topK, token, kept, keptCount;
  size_t room;

  // {wanted, temperature, topK, topP, u, token, margin, total, keptCount}: at least `count` of each; kept: as many for each
  Draws(napi_env env, napi_value draws, size_t count)
      : wanted(view<uint8_t>(env, field(env, draws, "wanted"), napi_uint8_array, count, "wanted")),
        temperature(doubles(env, field(env, draws, "temperature"), count, "temperature")),
        topP(doubles(env, field(env, draws, "topP"), count, "topP")),
        u(doubles(env, field(env, draws, "u"), count, "u")),
        margin(doubles(env, field(env, draws, "margin"), count, "margin")),
        total(doubles(env, field(env, draws, "total"), count, "total")),
        topK(integers(env, field(env, draws, "topK"), count, "topK")),
        token(integers(env, field(env, draws, "token"), count, "token")),
        kept(integers(env, field(env, draws, "kept"), count, "kept")),
        keptCount(integers(env, field(env, draws, "keptCount"), count, "keptCount")),
        room(kept.length / keptCount.length) {}

  void draw(const float* logits, size_t count, size_t vocabulary) const {
    static thread_local gradus::Sampler sampler;
    for (size_t row = 0; row < count; row++) {
      if (wanted.data[row] == 0) continue;
      const gradus::Draw drawn = sampler.draw(logits + row * vocabulary, vocabulary, temperature.data[row],
                                              topK.data[row], topP.data[row], u.data[row],
                                              kept.data + row * room, room);
      token.data[row] = drawn.token;
      margin.data[row] = drawn.margin;
      total.data[row] = drawn.total;
      keptCount.data[row] = drawn.kept;
    }
  }
};

// open(library, {graph, weights, tensors: [{name, type, start, shape}], threads, layers, heads, headSize, vocabulary,
// lanes}, sibling?) -> session; `start` is in bytes. It shares what the library packs of the weights with `sibling`, a
// session of the same weights.
napi_value open(napi_env env, napi_callback_info info) {
  return guarded(env, [&]() {
    size_t count = 3;
    napi_value args[3];
    check(napi_get_cb_info(env, info, &count, args, nullptr, nullptr), "arguments");
    initialize(text(env, args[0]));
    napi_value model = args[1];
    auto session = std::make_unique<Session>();
    session->layers = integer(env, field(env, model, "layers"), "layers");
    session->heads = integer(env, field(env, model, "heads"), "heads");
    session->headSize = integer(env, field(env, model, "headSize"), "headSize");
    session->vocabulary = integer(env, field(env, model, "vocabulary"), "vocabulary");
    session->lanes = integer(env, field(env, model, "lanes"), "lanes");
    session->inputNames = {"input_ids", "seqlens_k", "total_sequence_length"};
    if (session->lanes > 0) session->inputNames.insert(session->inputNames.end(), {"piece_sizes", "last_index"});
    session->outputNames = {"logits"};
    for (int64_t lane = 0; lane < (session->lanes > 0 ? session->lanes : 1); lane++) {
      const std::string suffix = session->lanes > 0 ? "." + std::to_string(lane) : "";
      for (int64_t layer = 0; layer < session->layers; layer++) {
        for (const char* part : {".key", ".value"}) {
          session->inputNames.push_back("past." + std::to_string(layer) + part + suffix);
          session->outputNames.push_back("present." + std::to_string(layer) + part + suffix);
        }
      }
    }
    napi_value weightsValue = field(env, model, "weights");
    View<uint8_t> weights = view<uint8_t>(env, weightsValue, napi_uint8_array, 1, "weights");
    View<uint8_t> graph = view<uint8_t>(env, field(env, model, "graph"), napi_uint8_array, 1, "graph");
    const bool alone = count < 3;
    session->packed = alone ? std::make_shared<PackedWeights>() : sessionOf(env, args[2])->packed;

    OptionsGuard guard;
    check(api->CreateSessionOptions(&guard.options));
    int threads = static_cast<int>(integer(env, field(env, model, "threads"), "threads"));
    check(api->SetIntraOpNumThreads(guard.options, threads));
    check(api->SetInterOpNumThreads(guard.options, 1));
    check(api->SetSessionGraphOptimizationLevel(guard.options, ORT_ENABLE_ALL));
    const auto configure = [&](const char* key, const char* value) {
      check(api->AddSessionConfigEntry(guard.options, key, value));
    };
    // Threads that go on looking for work after a run would, for some 20 ms, take a core from the other graph's.
    configure("session.force_spinning_stop", "1");
    // Weights have to be packed: kernels for weights that are not add up in blocks that depend on each thread's share of
    // the product, and so would bits. Named as initializers that sessions share they are packed once for all of them, and
    // as the graph's external ones they are read from where they lie.
    napi_value tensors = field(env, model, "tensors");
    uint32_t tensorCount;
    check(napi_get_array_length(env, tensors, &tensorCount), "tensors");
    std::vector<std::string> names(tensorCount);
    std::vector<const char*> namesGiven;
    std::vector<const OrtValue*> given;
    bool packs = false;
    for (uint32_t i = 0; i < tensorCount; i++) {
      napi_value entry;
      check(napi_get_element(env, tensors, i, &entry), "tensors");
      const char* name = (names[i] = text(env, field(env, entry, "name"))).c_str();
      const std::vector<int64_t> shape = extents(env, field(env, entry, "shape"), name);
      const int64_t start = integer(env, field(env, entry, "start"), name);
      const bool isPacked = text(env, field(env, entry, "type")) == "uint8";
      packs = packs || isPacked;
      const int64_t size = elements(shape) * (isPacked ? 1 : static_cast<int64_t>(sizeof(float)));
      if (start < 0 || size < 0 || start + size > static_cast<int64_t>(weights.length)) {
        throw Failure{"beyond the weights: " + names[i]};
      }
      const auto type = isPacked ? ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 : ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
      session->initializers.push_back(tensor(weights.data + start, static_cast<size_t>(size), shape, type));
      namesGiven.push_back(name);
      given.push_back(session->initializers.back().get());
      check(api->AddInitializer(guard.options, name, given.back()));
    }
    check(api->AddExternalInitializers(guard.options, namesGiven.data(), given.data(), tensorCount));
    if (packs) check(api->AddCustomOpDomain(guard.options, operators));
    const auto create = [&] {
      check(api->CreateSessionFromArrayWithPrepackedWeightsContainer(environment, graph.data, graph.length, guard.options,
                                                                     session->packed->container, &session->session));
    };
    if (packs && !knowsOperators) {
      std::unique_lock<std::shared_mutex> lock(domains);
      create();
      knowsOperators = true;
    } else {
      std::shared_lock<std::shared_mutex> lock(domains);
      create();
    }
    // onnxruntime copies weights while it makes a session, and packs them once more for a sibling. The copy of few is not
    // worth the milliseconds.
    if (!alone || weights.length >= MANY_WEIGHTS) giveBackFreed();

    check(napi_create_reference(env, weightsValue, 1, &session->weights), "weights");
    napi_value result;
    auto release = [](napi_env env, void* pointer, void*) {
      auto* session = static_cast<Session*>(pointer);
      if (session->weights != nullptr) napi_delete_reference(env, session->weights);
      delete session;
    };
    check(napi_create_external(env, session.get(), release, nullptr, &result), "session");
    session.release();
    return result;
  });
}

// close(session): frees the model now; what is left is freed with the object.
napi_value close(napi_env env, napi_callback_info info) {
  return guarded(env, [&]() -> napi_value {
    size_t count = 1;
    napi_value args[1];
    check(napi_get_cb_info(env, info, &count, args, nullptr, nullptr), "arguments");
    Session* session = sessionOf(env, args[0]);
    api->ReleaseSession(session->session);
    session->session = nullptr;
    session->initializers.clear();
    session->packed.reset();
    napi_delete_reference(env, session->weights);
    session->weights = nullptr;
    giveBackFreed();
    return nullptr;
  });
}

// discard(weights, start, length): gives back the pages that lie wholly in these bytes, which are zeros from then on; the
// bytes stay as they are where a system has no such call.
napi_value discard(napi_env env, napi_callback_info info) {
  return guarded(env, [&]() -> napi_value {
    size_t argc = 3;
    napi_value args[3];
    check(napi_get_cb_info(env, info, &argc, args, nullptr, nullptr), "arguments");
    View<uint8_t> weights = view<uint8_t>(env, args[0], napi_uint8_array, 1, "weights");
    const int64_t start = integer(env, args[1], "start");
    const int64_t length = integer(env, args[2], "length");
    if (start < 0 || length < 0 || start + length > static_cast<int64_t>(weights.length)) {
      throw Failure{"beyond the weights"};
    }
#ifdef __linux__
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto from = (reinterpret_cast<uintptr_t>(weights.data) + static_cast<uintptr_t>(start) + page - 1) / page * page;
    const auto to = (reinterpret_cast<uintptr_t>(weights.data) + static_cast<uintptr_t>(start + length)) / page * page;
    if (to > from) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
#endif
    return nullptr;
  });
}

// prefill(session, tokens, logits [V], rows [2L, K, length, D])
napi_value prefill(napi_env env, napi_callback_info info) {
  return guarded(env, [&]() -> napi_value {
    size_t argc = 4;
    napi_value args[4];
    check(napi_get_cb_info(env, info, &argc, args, nullptr, nullptr), "arguments");
    Session* session = sessionOf(env, args[0]);
    View<int32_t> tokens = integers(env, args[1], 1, "tokens");
    const auto length = static_cast<int64_t>(tokens.length);
    const size_t part = static_cast<size_t>(session->heads * length * session->headSize);
    View<float> logits = floats(env, args[2], static_cast<size_t>(session->vocabulary), "logits");
    View<float> rows = floats(env, args[3], 2 * static_cast<size_t>(session->layers) * part, "rows");
    int32_t last = static_cast<int32_t>(length - 1);
    session->total = static_cast<int32_t>(length);
    std::vector<Value> inputs;
    std::vector<Value> outputs;
    inputs.push_back(integerTensor(tokens.data, {1, length}));
    inputs.push_back(integerTensor(&last, {1}));
    inputs.push_back(integerTensor(&session->total, {1}));
    outputs.push_back(floatTensor(logits.data, {1, session->vocabulary}));
    for (int64_t i = 0; i < 2 * session->layers; i++) {
      inputs.push_back(floatTensor(&session->nothing, {1, session->heads, 0, session->headSize}));
      float* present = rows.data + static_cast<size_t>(i) * part;
      outputs.push_back(floatTensor(present, {1, session->heads, length, session->headSize}));
    }
    session->run(inputs, outputs);
    return nullptr;
  });
}

// bind(session, {parts: [2L] of [slots, K, C, D], tokens, lengths, logits [slots, V], count, capacity, total}) -> binding
napi_value bind(napi_env env, napi_callback_info info) {
  return guarded(env, [&]() {
    size_t argc = 2;
    napi_value args[2];
    check(napi_get_cb_info(env, info, &argc, args, nullptr, nullptr), "arguments");
    auto binding = std::make_unique<Binding>();
    Session* session = binding->session = sessionOf(env, args[0]);
    napi_value block = args[1];
    const int64_t count = integer(env, field(env, block, "count"), "count");
    const int64_t capacity = integer(env, field(env, block, "capacity"), "capacity");
    if (count < 1 || capacity < 1) throw Failure{"a block needs a slot and a capacity of at least 1"};
    binding->count = static_cast<size_t>(count);
    binding->total = static_cast<int32_t>(integer(env, field(env, block, "total"), "total"));
    // The session is held too: a binding must not outlive it.
    std::vector<napi_value> held{args[0]};
    const auto keep = [&](const char* name) {
      held.push_back(field(env, block, name));
      return held.back();
    };
    View<int32_t> tokens = integers(env, keep("tokens"), binding->count, "tokens");
    View<int32_t> lengths = integers(env, keep("lengths"), binding->count, "lengths");
    const auto vocabulary = static_cast<size_t>(session->vocabulary);
    binding->logits = floats(env, keep("logits"), binding->count * vocabulary, "logits");
    binding->inputs.push_back(integerTensor(tokens.data, {count, 1}));
    binding->inputs.push_back(integerTensor(lengths.data, {count}));
    binding->inputs.push_back(integerTensor(&binding->total, {1}));
    binding->outputs.push_back(floatTensor(binding->logits.data, {count, session->vocabulary}));
    napi_value parts = field(env, block, "parts");
    const std::vector<int64_t> shape{count, session->heads, capacity, session->headSize};
    const auto size = static_cast<size_t>(count * session->heads * capacity * session->headSize);
    for (int64_t i = 0; i < 2 * session->layers; i++) {
      napi_value part;
      check(napi_get_element(env, parts, static_cast<uint32_t>(i), &part), "parts");
      held.push_back(part);
      View<float> cache = floats(env, part, size, "parts");
      // One memory as past and as present: the new row is written into its place.
      binding->inputs.push_back(floatTensor(cache.data, shape));
      binding->outputs.push_back(floatTensor(cache.data, shape));
    }
    for (napi_value value : held) {
      napi_ref reference;
      check(napi_create_reference(env, value, 1, &reference), "block");
      binding->held.push_back(reference);
    }
    napi_value result;
    auto release = [](napi_env env, void* pointer, void*) {
      auto* binding = static_cast<Binding*>(pointer);
      for (napi_ref reference : binding->held) napi_delete_reference(env, reference);
      delete binding;
    };
    check(napi_create_external(env, binding.get(), release, nullptr, &result), "binding");
    binding.release();
    return result;
  });
}

// step(binding, {wanted, temperature, topK, topP, u, token, margin, total, kept, keptCount}): each [slots], kept [slots, room]; draws where `wanted` is 1.
napi_value step(napi_env env, napi_callback_info info) {
  return guarded(env, [&]() -> napi_value {
    size_t argc = 2;
    napi_value args[2];
    check(napi_get_cb_info(env, info, &argc, args, nullptr, nullptr), "arguments");
    void* pointer;
    check(napi_get_value_external(env, args[0], &pointer), "binding");
    auto* binding = static_cast<Binding*>(pointer);
    Session* session = binding->session;
    if (session->session == nullptr) throw Failure{"the session is closed"};
    const Draws draws(env, args[1], binding->count);
    session->run(binding->inputs, binding->outputs);
    draws.draw(binding->logits.data, binding->count, static_cast<size_t>(session->vocabulary));
    return nullptr;
  });
}

// feed(session, {tokens [S], sizes [n], lengths [n], capacities [n], totals [n], caches: [n · 2L] of [K, C, D],
// logits [G, V]}, draws of [n]): a piece for each of n ≤ G lanes, the pieces end to end in `tokens`, written into the
// lane's caches from its length on.
napi_value feed(napi_env env, napi_callback_info info) {
  return guarded(env, [&]() -> napi_value {
    size_t argc = 3;
    napi_value args[3];
    check(napi_get_cb_info(env, info, &argc, args, nullptr, nullptr), "arguments");
    Session* session = sessionOf(env, args[0]);
    const auto lanes = static_cast<size_t>(session->lanes);
    napi_value pieces = args[1];
    View<int32_t> given = integers(env, field(env, pieces, "tokens"), 1, "tokens");
    View<int32_t> sizes = integers(env, field(env, pieces, "sizes"), 1, "sizes");
    const size_t count = sizes.length;
    if (count > lanes) throw Failure{"more pieces than lanes"};
    View<int32_t> lengths = integers(env, field(env, pieces, "lengths"), count, "lengths");
    View<int32_t> capacities = integers(env, field(env, pieces, "capacities"), count, "capacities");
    View<int32_t> bounds = integers(env, field(env, pieces, "totals"), count, "totals");
    const auto vocabulary = static_cast<size_t>(session->vocabulary);
    View<float> logits = floats(env, field(env, pieces, "logits"), lanes * vocabulary, "logits");
    const Draws draws(env, args[2], count);

    // A lane without a sequence computes one token that nobody reads.
    std::vector<int32_t> tokens(given.data, given.data + given.length);
    std::vector<int32_t> last(lanes, 0);
    std::vector<int32_t> totals(lanes, 1);
    std::vector<int64_t> parts(lanes, 1);
    std::vector<int64_t> lastIndex;
    std::vector<float> idle(static_cast<size_t>(session->heads * session->headSize));
    size_t fed = 0;
    for (size_t lane = 0; lane < count; lane++) {
      const int64_t size = sizes.data[lane];
      const int64_t end = lengths.data[lane] + size;
      if (lengths.data[lane] < 1 || size < 1 || end > bounds.data[lane] || bounds.data[lane] > capacities.data[lane]) {
        throw Failure{"a piece does not fit its cache"};
      }
      fed += static_cast<size_t>(size);
      parts[lane] = size;
      last[lane] = static_cast<int32_t>(end - 1);
      totals[lane] = bounds.data[lane];
    }
    if (fed != given.length) throw Failure{"the pieces are not as long as their sizes"};
    tokens.resize(fed + lanes - count, 0);
    int64_t end = 0;
    for (int64_t size : parts) lastIndex.push_back((end += size) - 1);

    const auto laneCount = static_cast<int64_t>(lanes);
    std::vector<Value> inputs;
    std::vector<Value> outputs;
    inputs.push_back(integerTensor(tokens.data(), {1, static_cast<int64_t>(tokens.size())}));
    inputs.push_back(integerTensor(last.data(), {laneCount}));
    inputs.push_back(integerTensor(totals.data(), {laneCount}));
    for (auto* values : {&parts, &lastIndex}) {
      inputs.push_back(
          tensor(values->data(), lanes * sizeof(int64_t), {laneCount}, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64));
    }
    outputs.push_back(floatTensor(logits.data, {laneCount, session->vocabulary}));
    napi_value caches = field(env, pieces, "caches");
    uint32_t index = 0;
    for (size_t lane = 0; lane < lanes; lane++) {
      const int64_t capacity = lane < count ? capacities.data[lane] : 1;
      const std::vector<int64_t> shape{1, session->heads, capacity, session->headSize};
      for (int64_t part = 0; part < 2 * session->layers; part++) {
        float* rows = idle.data();
        if (lane < count) {
          napi_value cache;
          check(napi_get_element(env, caches, index++, &cache), "caches");
          rows = floats(env, cache, static_cast<size_t>(session->heads * capacity * session->headSize), "caches").data;
        }
        inputs.push_back(floatTensor(rows, shape));
        outputs.push_back(floatTensor(rows, shape));
      }
    }
    session->run(inputs, outputs);
    draws.draw(logits.data, count, vocabulary);
    return nullptr;
  });
}

// draw(logits [V], temperature, topK, topP, u, out [token, margin, total, kept], kept [room]): one row, for tests against TypeScript.
napi_value draw(napi_env env, napi_callback_info info) {
  return guarded(env, [&]() -> napi_value {
    size_t argc = 7;
    napi_value args[7];
    check(napi_get_cb_info(env, info, &argc, args, nullptr, nullptr), "arguments");
    View<float> logits = floats(env, args[0], 1, "logits");
    double temperature, topP, u;
    check(napi_get_value_double(env, args[1], &temperature), "temperature");
    const auto topK = static_cast<int32_t>(integer(env, args[2], "topK"));
    check(napi_get_value_double(env, args[3], &topP), "topP");
    check(napi_get_value_double(env, args[4], &u), "u");
    View<double> out = doubles(env, args[5], 4, "out");
    View<int32_t> kept = integers(env, args[6], 1, "kept");
    static thread_local gradus::Sampler sampler;
    const gradus::Draw drawn = 
        sampler.draw(logits.data, logits.length, temperature, topK, topP, u, kept.data, kept.length);
    out.data[0] = drawn.token;
    out.data[1] = drawn.margin;
    out.data[2] = drawn.total;
    out.data[3] = drawn.kept;
    return nullptr;
  });
}

Packed packedMatrix(napi_env env, napi_value value) {
  return {static_cast<Stored>(integer(env, field(env, value, "stored"), "stored")),
          integer(env, field(env, value, "out"), "out"), integer(env, field(env, value, "in"), "in")};
}

// pack({stored, out, in}, data, first, weights [rows, in]): rounds them into the matrix, from its row `first` on.
napi_value pack(napi_env env, napi_callback_info info) {
  return guarded(env, [&]() -> napi_value {
    size_t argc = 4;
    napi_value args[4];
    check(napi_get_cb_info(env, info, &argc, args, nullptr, nullptr), "arguments");
    const Packed matrix = packedMatrix(env, args[0]);
    View<uint8_t> data = view<uint8_t>(env, args[1], napi_uint8_array, static_cast<size_t>(matrix.bytes()), "data");
    const int64_t first = integer(env, args[2], "first");
    View<float> weights = floats(env, args[3], 1, "weights");
    const int64_t rows = static_cast<int64_t>(weights.length) / matrix.in;
    if (first < 0 || first + rows > matrix.out) throw Failure{"more rows than the matrix has"};
    gradus::packRows(matrix, data.data, first, weights.data, rows);
    return nullptr;
  });
}

// multiply(kernels, {stored, out, in}, data, x [rows, in], y [rows, out]): with the kernels of that name.
napi_value multiply(napi_env env, napi_callback_info info) {
  return guarded(env, [&]() -> napi_value {
    size_t argc = 5;
    napi_value args[5];
    check(napi_get_cb_info(env, info, &argc, args, nullptr, nullptr), "arguments");
    const std::string name = text(env, args[0]);
    const Packed matrix = packedMatrix(env, args[1]);
    View<uint8_t> data = view<uint8_t>(env, args[2], napi_uint8_array, static_cast<size_t>(matrix.bytes()), "data");
    View<float> x = floats(env, args[3], 1, "x");
    const int64_t rows = static_cast<int64_t>(x.length) / matrix.in;
    View<float> y = floats(env, args[4], static_cast<size_t>(rows * matrix.out), "y");
    int count;
    const gradus::Kernels* const* here = gradus::kernelsHere(count);
    for (int i = 0; i < count; i++) {
      if (name != here[i]->name) continue;
      for (int64_t panel = 0; panel < matrix.panels(); panel++) {
        gradus::multiplyPanel(*here[i], matrix, data.data, panel, x.data, rows, y.data);
      }
      return nullptr;
    }
    throw Failure{"no such kernels here: " + name};
  });
}

}  // namespace

NAPI_MODULE_INIT() {
  const struct {
    const char* name;
    napi_callback function;
  } functions[] = {{"open", open}, {"close", close}, {"prefill", prefill}, {"bind", bind},        {"step", step},
                   {"feed", feed}, {"draw", draw},   {"pack", pack},       {"multiply", multiply}, {"discard", discard}};
  for (const auto& [name, function] : functions) {
    napi_value value;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &value);
    napi_set_named_property(env, exports, name, value);
  }
  int count;
  const gradus::Kernels* const* here = gradus::kernelsHere(count);
  napi_value kernels;
  napi_create_array(env, &kernels);
  for (int i = 0; i < count; i++) {
    napi_value name;
    napi_create_string_utf8(env, here[i]->name, NAPI_AUTO_LENGTH, &name);
    napi_set_element(env, kernels, static_cast<uint32_t>(i), name);
  }
  napi_set_named_property(env, exports, "kernels", kernels);
  napi_value sources;
  napi_create_string_utf8(env, GRADUS_SOURCES, NAPI_AUTO_LENGTH, &sources);
  napi_set_named_property(env, exports, "sources", sources);
  return exports;
}
