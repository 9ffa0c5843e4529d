// Arguments that come from JavaScript, checked, and errors that go there.

#pragma once

#include <node_api.h>

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace gradus {

// What goes wrong becomes a JavaScript error; no C++ exception leaves a function that JavaScript calls.
struct Failure {
  std::string message;
};

inline void check(napi_status status, const char* what) {
  if (status != napi_ok) throw Failure{std::string("wrong argument: ") + what};
}

template <typename Body>
napi_value guarded(napi_env env, Body body) {
  try {
    return body();
  } catch (const Failure& failure) {
    napi_throw_error(env, nullptr, failure.message.c_str());
  } catch (const std::exception& error) {
    napi_throw_error(env, nullptr, error.what());
  }
  return nullptr;
}

// The elements of a typed array, whose memory stays where it is for as long as the array is referred to.
template <typename T>
struct View {
  T* data = nullptr;
  size_t length = 0;
};

template <typename T>
View<T> view(napi_env env, napi_value value, napi_typedarray_type type, size_t least, const char* what) {
  napi_typedarray_type actual;
  size_t length;
  void* data;
  check(napi_get_typedarray_info(env, value, &actual, &length, &data, nullptr, nullptr), what);
  if (actual != type || length < least) throw Failure{std::string("wrong type or too short: ") + what};
  return {static_cast<T*>(data), length};
}

inline View<float> floats(napi_env env, napi_value value, size_t least, const char* what) {
  return view<float>(env, value, napi_float32_array, least, what);
}

inline View<int32_t> integers(napi_env env, napi_value value, size_t least, const char* what) {
  return view<int32_t>(env, value, napi_int32_array, least, what);
}

inline View<double> doubles(napi_env env, napi_value value, size_t least, const char* what) {
  return view<double>(env, value, napi_float64_array, least, what);
}

inline std::string text(napi_env env, napi_value value) {
  size_t length;
  check(napi_get_value_string_utf8(env, value, nullptr, 0, &length), "text");
  std::string result(length, '\0');
  check(napi_get_value_string_utf8(env, value, &result[0], length + 1, &length), "text");
  return result;
}

inline int64_t integer(napi_env env, napi_value value, const char* what) {
  int64_t result;
  check(napi_get_value_int64(env, value, &result), what);
  return result;
}

inline napi_value field(napi_env env, napi_value object, const char* name) {
  napi_value value;
  check(napi_get_named_property(env, object, name, &value), name);
  return value;
}

// A shape: an array of integers.
inline std::vector<int64_t> extents(napi_env env, napi_value value, const char* what) {
  uint32_t rank;
  check(napi_get_array_length(env, value, &rank), what);
  std::vector<int64_t> shape(rank);
  for (uint32_t axis = 0; axis < rank; axis++) {
    napi_value extent;
    check(napi_get_element(env, value, axis, &extent), what);
    shape[axis] = integer(env, extent, what);
  }
  return shape;
}

}  // namespace gradus
