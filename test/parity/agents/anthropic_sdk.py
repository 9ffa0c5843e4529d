"""Anthropic's SDK: STREAM says whether answers are streamed."""

import os

from anthropic import Anthropic

STREAM = os.environ["STREAM"] == "1"
client = Anthropic()
PARAMETERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}
messages = [{"role": "user", "content": os.environ["GRADUS_TASK"]}]
asked = {
    "model": os.environ["ANTHROPIC_MODEL"],
    "max_tokens": 500,
    "system": "Add.",
    "tools": [{"name": "add", "description": "Adds two numbers.", "input_schema": PARAMETERS}],
}
while True:
    if STREAM:
        with client.messages.stream(messages=messages, **asked) as stream:
            message = stream.get_final_message()
    else:
        message = client.messages.create(messages=messages, **asked)
    messages.append({"role": "assistant", "content": message.content})
    uses = [block for block in message.content if block.type == "tool_use"]
    if not uses:
        break
    results = [
        {"type": "tool_result", "tool_use_id": use.id, "content": str(use.input["a"] + use.input["b"])} for use in uses
    ]
    messages.append({"role": "user", "content": results})
with open(os.environ["GRADUS_ANSWER"], "w") as file:
    file.write("".join(block.text for block in message.content if block.type == "text"))
