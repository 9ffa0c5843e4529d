#include "packed-operators.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "packed.h"

namespace gradus {
namespace {

const OrtApi* ort = nullptr;

// Rows of x that a thread multiplies by a panel at once, and additions below which one thread has less to do alone.
constexpr int64_t ROWS = 48;
constexpr int64_t FEW = 1 << 16;

struct Kernel {
  Packed matrix;
  const Kernels* kernels;
};

struct Tensor {
  const void* data;
  std::vector<int64_t> shape;
  int64_t elements;
};

OrtStatus* input(const OrtKernelContext* context, size_t index, Tensor& tensor) {
  const OrtValue* value;
  if (OrtStatus* status = ort->KernelContext_GetInput(context, index, &value)) return status;
  if (OrtStatus* status = ort->GetTensorData(value, &tensor.data)) return status;
  OrtTensorTypeAndShapeInfo* info;
  if (OrtStatus* status = ort->GetTensorTypeAndShape(value, &info)) return status;
  size_t rank = 0;
  OrtStatus* status = ort->GetDimensionsCount(info, &rank);
  if (status == nullptr) {
    tensor.shape.resize(rank);
    status = ort->GetDimensions(info, tensor.shape.data(), rank);
  }
  ort->ReleaseTensorTypeAndShapeInfo(info);
  tensor.elements = 1;
  for (int64_t extent : tensor.shape) tensor.elements *= extent;
  return status;
}

OrtStatus* output(OrtKernelContext* context, const std::vector<int64_t>& shape, float*& data) {
  OrtValue* value;
  if (OrtStatus* status = ort->KernelContext_GetOutput(context, 0, shape.data(), shape.size(), &value)) return status;
  void* memory;
  if (OrtStatus* status = ort->GetTensorMutableData(value, &memory)) return status;
  data = static_cast<float*>(memory);
  return nullptr;
}

OrtStatus* wrong(const char* what) { return ort->CreateStatus(ORT_INVALID_ARGUMENT, what); }

OrtStatus* create(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo* info, void** kernel) {
  int64_t stored;
  int64_t out;
  int64_t in;
  if (OrtStatus* status = ort->KernelInfoGetAttribute_int64(info, "stored", &stored)) return status;
  if (OrtStatus* status = ort->KernelInfoGetAttribute_int64(info, "out", &out)) return status;
  if (OrtStatus* status = ort->KernelInfoGetAttribute_int64(info, "in", &in)) return status;
  int count;
  *kernel = new Kernel{{static_cast<Stored>(stored), out, in}, kernelsHere(count)[0]};
  return nullptr;
}

struct Product {
  const Kernel* kernel;
  const uint8_t* weights;
  const float* x;
  float* y;
  int64_t rows;
  int64_t panels;

  // One panel with up to ROWS rows. How they are cut does not show in the bits.
  void part(size_t index) const {
    const int64_t panel = static_cast<int64_t>(index) % panels;
    const int64_t first = static_cast<int64_t>(index) / panels * ROWS;
    const Packed& matrix = kernel->matrix;
    multiplyPanel(*kernel->kernels, matrix, weights, panel, x + first * matrix.in, std::min(ROWS, rows - first),
                  y + first * matrix.out);
  }
};

OrtStatus* multiply(void* self, OrtKernelContext* context) {
  const auto* kernel = static_cast<const Kernel*>(self);
  const Packed& matrix = kernel->matrix;
  Tensor x;
  Tensor weights;
  if (OrtStatus* status = input(context, 0, x)) return status;
  if (OrtStatus* status = input(context, 1, weights)) return status;
  if (x.shape.empty() || x.shape.back() != matrix.in) return wrong("x has not as many inputs as the matrix");
  if (weights.elements != matrix.bytes()) return wrong("the matrix has not its size");
  std::vector<int64_t> shape = x.shape;
  shape.back() = matrix.out;
  Product product{kernel, static_cast<const uint8_t*>(weights.data), static_cast<const float*>(x.data), nullptr,
                  x.elements / matrix.in, matrix.panels()};
  if (OrtStatus* status = output(context, shape, product.y)) return status;
  const int64_t parts = product.panels * ((product.rows + ROWS - 1) / ROWS);
  if (product.rows * matrix.in * matrix.out < FEW) {
    for (int64_t i = 0; i < parts; i++) product.part(static_cast<size_t>(i));
    return nullptr;
  }
  const auto part = [](void* given, size_t index) { static_cast<const Product*>(given)->part(index); };
  return ort->KernelContext_ParallelFor(context, part, static_cast<size_t>(parts), 0, &product);
}

OrtStatus* gather(void* self, OrtKernelContext* context) {
  const Packed& matrix = static_cast<const Kernel*>(self)->matrix;
  Tensor weights;
  Tensor ids;
  if (OrtStatus* status = input(context, 0, weights)) return status;
  if (OrtStatus* status = input(context, 1, ids)) return status;
  if (weights.elements != matrix.bytes()) return wrong("the matrix has not its size");
  std::vector<int64_t> shape = ids.shape;
  shape.push_back(matrix.in);
  float* out;
  if (OrtStatus* status = output(context, shape, out)) return status;
  const auto* id = static_cast<const int32_t*>(ids.data);
  for (int64_t i = 0; i < ids.elements; i++) {
    if (id[i] < 0 || id[i] >= matrix.out) return wrong("an id is beyond the vocabulary");
    unpackRow(matrix, static_cast<const uint8_t*>(weights.data), id[i], out + i * matrix.in);
  }
  return nullptr;
}

struct Operator : OrtCustomOp {
  const char* name;
  ONNXTensorElementDataType inputs[2];
};

Operator describe(const char* name, ONNXTensorElementDataType first, ONNXTensorElementDataType second,
                  OrtStatus* (*compute)(void*, OrtKernelContext*)) {
  Operator op{};
  op.version = ORT_API_VERSION;
  op.name = name;
  op.inputs[0] = first;
  op.inputs[1] = second;
  op.GetName = [](const OrtCustomOp* self) { return static_cast<const Operator*>(self)->name; };
  op.GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
  op.GetInputType = [](const OrtCustomOp* self, size_t i) { return static_cast<const Operator*>(self)->inputs[i]; };
  op.GetInputTypeCount = [](const OrtCustomOp*) -> size_t { return 2; };
  op.GetOutputType = [](const OrtCustomOp*, size_t) { return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT; };
  op.GetOutputTypeCount = [](const OrtCustomOp*) -> size_t { return 1; };
  op.GetInputCharacteristic = [](const OrtCustomOp*, size_t) { return INPUT_OUTPUT_REQUIRED; };
  op.GetOutputCharacteristic = [](const OrtCustomOp*, size_t) { return INPUT_OUTPUT_REQUIRED; };
  op.GetInputMemoryType = [](const OrtCustomOp*, size_t) { return OrtMemTypeDefault; };
  op.GetVariadicInputMinArity = [](const OrtCustomOp*) { return 1; };
  op.GetVariadicInputHomogeneity = [](const OrtCustomOp*) { return 1; };
  op.GetVariadicOutputMinArity = [](const OrtCustomOp*) { return 1; };
  op.GetVariadicOutputHomogeneity = [](const OrtCustomOp*) { return 1; };
  op.GetStartVersion = [](const OrtCustomOp*) { return 1; };
  op.GetEndVersion = [](const OrtCustomOp*) { return 1; };
  op.CreateKernelV2 = create;
  op.KernelComputeV2 = compute;
  op.KernelDestroy = [](void* kernel) { delete static_cast<Kernel*>(kernel); };
  return op;
}

}  // namespace

OrtStatus* createOperators(const OrtApi* api, OrtCustomOpDomain** domain) {
  ort = api;
  static Operator product =
      describe("PackedMatMul", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, multiply);
  static Operator rows =
      describe("PackedGather", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, gather);
  if (OrtStatus* status = ort->CreateCustomOpDomain("gradus", domain)) return status;
  if (OrtStatus* status = ort->CustomOpDomain_Add(*domain, &product)) return status;
  return ort->CustomOpDomain_Add(*domain, &rows);
}

}  // namespace gradus
