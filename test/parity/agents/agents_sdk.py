"""OpenAI's Agents SDK, over Chat Completions or Responses: STREAM says whether answers are streamed."""

import asyncio
import os

from agents import Agent, Runner, function_tool, set_default_openai_api, set_tracing_disabled

set_tracing_disabled(True)
set_default_openai_api({"chat": "chat_completions", "responses": "responses"}[os.environ["API"]])


@function_tool
def add(a: float, b: float) -> str:
    """Adds two numbers."""
    return f"{a + b:g}"


async def answered() -> str:
    agent = Agent(name="adder", instructions="Add.", tools=[add], model=os.environ["OPENAI_MODEL"])
    if os.environ["STREAM"] == "0":
        return (await Runner.run(agent, os.environ["GRADUS_TASK"])).final_output
    run = Runner.run_streamed(agent, os.environ["GRADUS_TASK"])
    async for _ in run.stream_events():
        pass
    return run.final_output


with open(os.environ["GRADUS_ANSWER"], "w") as file:
    file.write(asyncio.run(answered()))
