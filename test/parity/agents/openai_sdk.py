"""OpenAI's SDK, with Chat Completions and with Responses: STREAM says whether answers are streamed."""

import json
import os

from openai import OpenAI

TASK, MODEL, STREAM = os.environ["GRADUS_TASK"], os.environ["OPENAI_MODEL"], os.environ["STREAM"] == "1"
client = OpenAI()
PARAMETERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}
FUNCTION = {"name": "add", "description": "Adds two numbers.", "parameters": PARAMETERS}


def added(arguments: str) -> str:
    numbers = json.loads(arguments)
    return str(numbers["a"] + numbers["b"])


def by_chat() -> str:
    messages = [{"role": "system", "content": "Add."}, {"role": "user", "content": TASK}]
    asked = {"model": MODEL, "tools": [{"type": "function", "function": FUNCTION}]}
    while True:
        if STREAM:
            with client.chat.completions.stream(messages=messages, **asked) as stream:
                message = stream.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(messages=messages, **asked).choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": added(call.function.arguments)})


def by_responses() -> str:
    asked = {"model": MODEL, "instructions": "Add.", "tools": [{"type": "function", "strict": False, **FUNCTION}]}
    given, previous = [{"role": "user", "content": TASK}], None
    while True:
        more = {"input": given, **({"previous_response_id": previous} if previous else {})}
        if STREAM:
            with client.responses.stream(**asked, **more) as stream:
                response = stream.get_final_response()
        else:
            response = client.responses.create(**asked, **more)
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        previous = response.id
        given = [{"type": "function_call_output", "call_id": call.call_id, "output": added(call.arguments)} for call in calls]


with open(os.environ["GRADUS_ANSWER"], "w") as file:
    file.write({"chat": by_chat, "responses": by_responses}[os.environ["API"]]())
