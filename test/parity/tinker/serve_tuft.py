"""TuFT's server of Tinker's API, on processors and without Ray: its model answers in this process.

Archives of adapters are packed here. TuFT itself answers with the address of a folder on its own disk.
"""

import argparse
import io
import tarfile
from pathlib import Path
from urllib.parse import quote

import torch
import uvicorn
from fastapi.responses import Response
from tinker import types
from tuft.backends.hf_training_model import HFTrainingModel
from tuft.config import AppConfig, ModelConfig
from tuft.server import create_root_app
from tuft.training_controller import TrainingController

parser = argparse.ArgumentParser()
for name in ("port", "base-model", "folder", "key"):
    parser.add_argument(f"--{name}")
given = parser.parse_args()


class Remote:
    """A method as Ray's actors have it."""

    def __init__(self, method):
        self.remote = method


class Actor:
    def __init__(self, model):
        self.model = model

    def __getattr__(self, name):
        return Remote(getattr(self.model, name))


HFTrainingModel.get_actor = classmethod(lambda cls, config: Actor(cls(config)))
for name in ("empty_cache", "reset_peak_memory_stats"):
    setattr(torch.cuda, name, lambda: None)
for name in ("memory_allocated", "memory_reserved", "max_memory_allocated"):
    setattr(torch.cuda, name, lambda: 0)

folder_of = TrainingController.build_archive_url


def packed_at(self, *args, **named):
    folder = folder_of(self, *args, **named)
    return types.CheckpointArchiveUrlResponse(
        url=f"http://127.0.0.1:{given.port}/packed?folder={quote(folder.url)}", expires=folder.expires
    )


TrainingController.build_archive_url = packed_at
model = ModelConfig(
    model_name="tiny",
    model_path=Path(given.base_model),
    max_model_len=64,
    max_lora_rank=8,
    # alpha is 32 for the rank of the cases, 4.
    lora_alpha_ratio=8,
    micro_batch_size=3,
    capabilities=["training"],
)
config = AppConfig(
    checkpoint_dir=Path(given.folder) / "saved", supported_models=[model], authorized_users={given.key: "parity"}
)
config.ensure_directories()
app = create_root_app(config)


@app.get("/packed")
def packed(folder: str) -> Response:
    files = io.BytesIO()
    with tarfile.open(fileobj=files, mode="w:gz") as archive:
        archive.add(Path(folder.removeprefix("file://")) / "adapter", arcname=".")
    return Response(files.getvalue(), media_type="application/gzip")


uvicorn.run(app, host="127.0.0.1", port=int(given.port))
