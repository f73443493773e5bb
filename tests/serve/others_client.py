"""What the clients ollama, anthropic, litellm and langchain-openai of Python do with the server at $LAPWING_URL."""

import json
import os
from typing import Literal

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
URL, MODEL = os.environ["LAPWING_URL"], "smollm2-135m-instruct"
ASK = [{"role": "user", "content": "Name a colour."}]

import ollama

client = ollama.Client(host=URL)
options = {"temperature": 0, "num_predict": 12}
assert [model.model for model in client.list().models] == [MODEL]
shown = client.show(MODEL)
assert shown.details.family == "llama" and "completion" in shown.capabilities
whole = client.chat(MODEL, messages=ASK, options=options)
assert whole.done and whole.message.content and whole.eval_count > 0 and whole.total_duration > 0
streamed = list(client.chat(MODEL, messages=ASK, options=options, stream=True))
assert "".join(part.message.content for part in streamed) == whole.message.content
assert streamed[-1].done_reason == whole.done_reason and not streamed[0].done
assert client.generate(MODEL, "Hello", options=options, keep_alive="10m").response
assert client.ps().models[0].model == MODEL
embedded = client.embed(MODEL, input=["a boat", "a ship"])
assert len(embedded.embeddings) == 2 and embedded.prompt_eval_count > 0
schema = {"type": "object", "properties": {"colour": {"enum": ["red", "green"]}}, "required": ["colour"], "additionalProperties": False}
formatted = client.chat(MODEL, messages=ASK, format=schema, options={"num_predict": 300})
assert json.loads(formatted.message.content)["colour"] in ("red", "green")
assert client.pull(MODEL).status == "success"
try:
    client.chat("nothing", messages=ASK)
    raise AssertionError("an unknown model was accepted")
except ollama.ResponseError as error:
    assert error.status_code == 404 and "nothing" in error.error
def paint(colour: str) -> str:
    """Paints a wall."""
    return "done"


message = ollama.Message(role="assistant", content="", thinking="Hm.", tool_calls=[{"function": {"name": "paint", "arguments": {"colour": "red"}}}])
back = client.chat(MODEL, messages=[*ASK, message, {"role": "tool", "tool_name": "paint", "content": "done"}], tools=[paint], options=options)
assert back.done
begun = client.chat(MODEL, messages=[*ASK, {"role": "assistant", "content": "My favourite colour is"}], options=options)
assert begun.prompt_eval_count < client.chat(MODEL, messages=[*ASK, {"role": "assistant", "content": "My favourite colour is"}, *ASK], options=options).prompt_eval_count
assert len(client.list().models[0].digest) == 64 and client.list().models[0].digest == client.ps().models[0].digest
print("ollama: ok")

import anthropic

claude = anthropic.Anthropic(base_url=URL, api_key="any", max_retries=0)
limits = {"model": MODEL, "max_tokens": 300}
tool = {"name": "paint", "description": "Paints a wall", "input_schema": schema}
called = claude.messages.create(messages=ASK, tools=[tool], tool_choice={"type": "any"}, **limits)
use = called.content[-1]
assert use.type == "tool_use" and use.input["colour"] in ("red", "green"), called
with claude.messages.stream(messages=ASK, tools=[tool], tool_choice={"type": "any"}, **limits) as stream:
    streamed = stream.get_final_message()
assert streamed.content[-1].input["colour"] in ("red", "green"), streamed
for message in (called, streamed):
    done = {"type": "tool_result", "tool_use_id": message.content[-1].id, "content": "done"}
    talk = [*ASK, {"role": "assistant", "content": message.content}, {"role": "user", "content": [done]}]
    assert claude.messages.create(messages=talk, tools=[tool], **{**limits, "max_tokens": 4}).content
begun = [*ASK, {"role": "assistant", "content": "My favourite colour is"}]
assert claude.messages.count_tokens(model=MODEL, messages=begun).input_tokens < claude.messages.count_tokens(model=MODEL, messages=[*begun, *ASK]).input_tokens
print(f"anthropic {anthropic.__version__}: ok")

import litellm

common = {"model": f"openai/{MODEL}", "api_base": f"{URL}/v1", "api_key": "any", "messages": ASK, "max_tokens": 12, "temperature": 0}
text = litellm.completion(**common).choices[0].message.content
parts = [part.choices[0].delta.content or "" for part in litellm.completion(stream=True, **common)]
assert text and "".join(parts) == text
through = litellm.completion(**{**common, "model": f"ollama_chat/{MODEL}", "api_base": URL})
assert through.choices[0].message.content == text
claude = litellm.completion(**{**common, "model": f"anthropic/{MODEL}", "api_base": URL})
assert claude.choices[0].message.content == text
print("litellm: ok")

from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field

chat = ChatOpenAI(model=MODEL, base_url=f"{URL}/v1", api_key="any", max_tokens=12, temperature=0)
assert chat.invoke("Name a colour.").content == text
assert "".join(part.content for part in chat.stream("Name a colour.")) == text
vectors = OpenAIEmbeddings(model=MODEL, base_url=f"{URL}/v1", api_key="any", check_embedding_ctx_length=False)
assert len(vectors.embed_documents(["a", "b"])) == 2


class Street(BaseModel):
    name: str = Field(max_length=8)
    number: int = Field(ge=1, le=99)


class Person(BaseModel):
    name: str = Field(max_length=8)
    street: Street
    tags: set[Literal["old", "new"]] = Field(max_length=2)


chat = ChatOpenAI(model=MODEL, base_url=f"{URL}/v1", api_key="any", max_tokens=300, temperature=0)
for method in ("function_calling", "json_schema"):
    assert isinstance(chat.with_structured_output(Person, method=method).invoke("Describe Ann of Main Street 5."), Person)
print("langchain-openai: ok")
