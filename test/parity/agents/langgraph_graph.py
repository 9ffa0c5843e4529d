"""LangGraph: a graph of a model and its tools, over Chat Completions or Responses. STREAM says whether answers are streamed."""

import os

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def add(a: float, b: float) -> str:
    """Adds two numbers."""
    return f"{a + b:g}"


model = ChatOpenAI(
    model=os.environ["OPENAI_MODEL"],
    use_responses_api=os.environ["API"] == "responses",
    streaming=os.environ["STREAM"] == "1",
).bind_tools([add])

graph = StateGraph(MessagesState)
graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", ToolNode([add]))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", tools_condition)
graph.add_edge("tools", "model")
asked = {"messages": [("system", "Add."), ("user", os.environ["GRADUS_TASK"])]}
answer = graph.compile().invoke(asked)["messages"][-1]

with open(os.environ["GRADUS_ANSWER"], "w") as file:
    file.write(answer.text)
