// The operators of the decoder's graph that read packed weights, in the domain `gradus`. Matrices are initializers of uint8;
// attributes `stored`, `out` and `in` say what lies in them (packed.h).
//
// PackedMatMul: x [.., in], matrix -> [.., out].
// PackedGather: matrix, ids int32 [..] -> [.., in].

#pragma once

#include "onnxruntime_c_api.h"

namespace gradus {

OrtStatus* createOperators(const OrtApi* api, OrtCustomOpDomain** domain);

}  // namespace gradus
