"""Safetensors as Gradus writes them: tensors in the order given, so that the same tensors have the same bytes on either side."""

import json
import struct

import torch

from fault import Fault

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

Tensors = dict[str, torch.Tensor]


def write(tensors: Tensors, metadata: dict[str, str]) -> bytes:
    """Eight bytes of header length, the header as JSON filled up with spaces to a multiple of 8, the tensors end to end."""
    header: dict = {"__metadata__": dict(sorted(metadata.items()))} if metadata else {}
    parts, at = [], 0
    for name, tensor in tensors.items():
        data = tensor.detach().contiguous().cpu()
        size = data.numel() * data.element_size()
        header[name] = {"dtype": NAMES[data.dtype], "shape": list(data.shape), "data_offsets": [at, at + size]}
        parts.append(data.flatten().view(torch.uint8).numpy().data)
        at += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *parts])


def read(data: bytes, what: str) -> tuple[Tensors, dict[str, str]]:
    """Tensors in the order of the header, and its metadata. Raises Fault("store", "corrupt-safetensors")."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + length])
        metadata = header.pop("__metadata__", {})
        body = memoryview(bytearray(data))[8 + length :]
        tensors = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            dtype = DTYPES[entry["dtype"]]
            empty = torch.empty(0, dtype=dtype)
            flat = torch.frombuffer(body[begin:end], dtype=dtype) if end > begin else empty
            tensors[name] = flat.reshape(entry["shape"])
        return tensors, metadata
    except (ValueError, KeyError, TypeError, struct.error, RuntimeError) as error:
        message = f"{what} is no safetensors file that can be read here: {error!r}"
        raise Fault("store", "corrupt-safetensors", message) from error
