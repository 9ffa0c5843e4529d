"""Writes the golden files beside it, with the messages of PyPI's tinker 0.38.0: pip install tinker==0.38.0; python write.py"""

from pathlib import Path

import numpy as np
from tinker import types
from tinker.proto import tinker_public_pb2 as pb
from tinker.proto.request_conv import forward_backward_request_to_proto

HERE = Path(__file__).parent


def tensor(dtype: str, values: list[float]) -> types.TensorData:
    return types.TensorData(data=np.array(values, dtype=dtype), dtype=dtype, shape=[len(values)])


def datum(tokens: list[int], targets: list[int], logprobs: list[float], advantages: list[float]) -> types.Datum:
    return types.Datum(
        model_input=types.ModelInput.from_ints(tokens),
        loss_fn_inputs={
            "target_tokens": tensor("int64", targets),
            "logprobs": tensor("float32", logprobs),
            "advantages": tensor("float32", advantages),
        },
    )


request = types.ForwardBackwardRequest(
    model_id="model-1",
    seq_id=7,
    forward_backward_input=types.ForwardBackwardInput(
        data=[
            datum([5, 151_000, 3], [151_000, 3, 2], [-0.25, -1.5, -3.125], [0.0, 1.5, -0.75]),
            datum([9], [2], [-0.1], [0.3]),
        ],
        loss_fn="ppo",
        loss_fn_config={"clip_low_threshold": 0.8, "clip_high_threshold": 1.28},
    ),
)
(HERE / "pass-request.bin").write_bytes(forward_backward_request_to_proto(request).SerializeToString(deterministic=True))


def batched(arrays: list[np.ndarray], dtype: int, trailing: list[int]) -> pb.BatchedTensor:
    offsets = np.cumsum([0, *(array.nbytes for array in arrays)], dtype=np.int64)
    data = b"".join(array.tobytes() for array in arrays)
    return pb.BatchedTensor(data=data, offsets=offsets.tobytes(), dtype=dtype, trailing_shape=trailing)


def record(logprobs: pb.BatchedTensor, count: int) -> pb.ArrayRecord:
    losses = batched([np.zeros(1, np.float32)] * count, pb.DTYPE_FLOAT32, [])
    return pb.ArrayRecord(type_tag="t:Losses", fields={"logprobs": logprobs, "loss": losses}, num_datums=count)


# Two records, as an answer in chunks has them; the second in bfloat16.
wide = [np.array([-0.25, -1.5, np.nan], np.float32), np.array([-0.1], np.float32)]
half = [(np.array([-2.5, -0.0078125], np.float32).view(np.uint32) >> 16).astype(np.uint16)]
answer = pb.ForwardBackwardOutput(
    loss_fn_output_type="t:Losses",
    loss_fn_outputs=[
        record(batched(wide, pb.DTYPE_FLOAT32, []), 2),
        record(batched(half, pb.DTYPE_BFLOAT16, []), 1),
    ],
    metrics={"loss:sum": 3.5},
)
(HERE / "pass-answer.bin").write_bytes(answer.SerializeToString(deterministic=True))

sample = pb.SampleResponse(
    sequences=[
        pb.SampledSequence(
            stop_reason=pb.STOP_REASON_STOP,
            tokens=np.array([41, 151_000, 2], np.int32).tobytes(),
            logprobs=np.array([-0.5, -0.125, -2.0], np.float32).tobytes(),
        ),
        pb.SampledSequence(
            stop_reason=pb.STOP_REASON_LENGTH,
            tokens=np.array([3], np.int32).tobytes(),
            logprobs=np.array([-1.0], np.float32).tobytes(),
        ),
    ],
    prompt_logprobs=np.array([np.nan, -4.0], np.float32).tobytes(),
    prompt_cache_hit_tokens=2,
)
(HERE / "sample-answer.bin").write_bytes(sample.SerializeToString(deterministic=True))
