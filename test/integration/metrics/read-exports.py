"""Reads what `gradus metrics` has exported, as anyone would, and prints it as JSON: `read-exports.py DIR FILE`."""

import json
import sys

import pyarrow.parquet
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

folder, file = sys.argv[1:]
runs = EventMultiplexer().AddRunsFromDirectory(folder).Reload()
scalars = {
    run: {
        tag: [[event.step, event.wall_time, event.value] for event in runs.Scalars(run, tag)]
        for tag in runs.GetAccumulator(run).Tags()["scalars"]
    }
    for run in runs.Runs()
}
table = pyarrow.parquet.read_table(file)
schema = {field.name: str(field.type) for field in table.schema}
json.dump({"scalars": scalars, "schema": schema, "rows": table.to_pylist()}, sys.stdout)
