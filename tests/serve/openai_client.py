"""What the official OpenAI client of Python does with the server at $LAPWING_URL. Runs with its major versions."""

import base64
import json
import os
import struct

import openai

MODEL = "smollm2-135m-instruct"
client = openai.OpenAI(base_url=os.environ["LAPWING_URL"] + "/v1", api_key="any", max_retries=0)
ASK = [{"role": "user", "content": "Name a colour."}]
GREEDY = {"model": MODEL, "temperature": 0, "max_tokens": 12}


def failing(error, call):
    try:
        call()
    except error as caught:
        return caught
    raise AssertionError(f"no {error.__name__}")


assert [model.id for model in client.models.list()] == [MODEL]
assert client.models.retrieve(MODEL).id == MODEL

whole = client.chat.completions.create(messages=ASK, **GREEDY)
text = whole.choices[0].message.content
assert text and whole.choices[0].finish_reason in ("stop", "length"), whole
assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens

chunks = list(client.chat.completions.create(messages=ASK, stream=True, stream_options={"include_usage": True}, **GREEDY))
assert chunks[0].choices[0].delta.role == "assistant"
assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == text
assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason
assert chunks[-1].usage.prompt_tokens_details.cached_tokens > 0, "the second prompt is the first one"

parts = [{"role": "developer", "content": [{"type": "text", "text": "Be brief."}]}, {"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
assert client.chat.completions.create(messages=parts, **GREEDY).choices[0].message.content

several = client.chat.completions.create(model=MODEL, messages=ASK, n=3, seed=7, max_tokens=8)
again = client.chat.completions.create(model=MODEL, messages=ASK, n=3, seed=7, max_tokens=8)
assert [c.message.content for c in several.choices] == [c.message.content for c in again.choices]
assert len({c.index for c in several.choices}) == 3

likely = client.chat.completions.create(messages=ASK, logprobs=True, top_logprobs=3, **GREEDY)
tokens = likely.choices[0].logprobs.content
assert "".join(t.token for t in tokens) == text, (tokens, text)
assert all(len(t.top_logprobs) == 3 and t.logprob <= 0 and t.top_logprobs[0].token == t.token for t in tokens)

stop = text.split()[1]
stopped = client.chat.completions.create(messages=ASK, stop=[stop], **GREEDY).choices[0]
assert stop not in stopped.message.content and stopped.finish_reason == "stop"

echo = client.completions.create(model=MODEL, prompt="The capital of France is", echo=True, logprobs=2, max_tokens=1, temperature=0)
assert echo.choices[0].text.startswith("The capital of France is")
assert echo.choices[0].logprobs.token_logprobs[0] is None and echo.choices[0].logprobs.token_logprobs[1] < 0
batch = client.completions.create(model=MODEL, prompt=["One", "Two"], max_tokens=2)
assert [choice.index for choice in batch.choices] == [0, 1]

# The client asks for base64, and decodes it.
embedded = client.embeddings.create(model=MODEL, input=["a boat", "a ship"])
raw = client.embeddings.create(model=MODEL, input="a boat", encoding_format="base64").data[0].embedding
assert len(embedded.data) == 2 and abs(sum(x * x for x in embedded.data[0].embedding) - 1) < 1e-3
values = struct.unpack(f"<{len(embedded.data[0].embedding)}f", base64.b64decode(raw))
assert max(abs(a - b) for a, b in zip(values, embedded.data[0].embedding)) < 1e-6

SCHEMA = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "green"]}, "shade": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["colour", "shade"],
    "additionalProperties": False,
}
formatted = client.chat.completions.create(
    model=MODEL, messages=ASK, max_tokens=300,
    response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}},
)
answer = json.loads(formatted.choices[0].message.content)
assert answer["colour"] in ("red", "green") and 0 <= answer["shade"] <= 9 and len(answer) == 2, answer

TOOL = {
    "type": "function",
    "function": {
        "name": "paint",
        "description": "Paints a wall",
        "parameters": {"type": "object", "properties": {"colour": {"enum": ["red", "green"]}}, "required": ["colour"], "additionalProperties": False},
    },
}
called = client.chat.completions.create(model=MODEL, messages=ASK, tools=[TOOL], tool_choice="required", max_tokens=300)
call = called.choices[0].message.tool_calls[0]
assert called.choices[0].finish_reason == "tool_calls" and call.function.name == "paint"
assert json.loads(call.function.arguments)["colour"] in ("red", "green")
named = {"type": "function", "function": {"name": "paint"}}
arguments, name = "", None
for chunk in client.chat.completions.create(model=MODEL, messages=ASK, tools=[TOOL], tool_choice=named, max_tokens=300, stream=True):
    for delta in chunk.choices[0].delta.tool_calls or []:
        name = delta.function.name or name
        arguments += delta.function.arguments or ""
assert name == "paint" and json.loads(arguments)["colour"] in ("red", "green"), (name, arguments)
result = [*ASK, called.choices[0].message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "done"}]
assert client.chat.completions.create(messages=result, tools=[TOOL], **GREEDY).choices[0].message.content is not None
# As it came, with fields that are null; and as the client adds up a stream.
result[1] = called.choices[0].message
assert client.chat.completions.create(messages=result, tools=[TOOL], **GREEDY).choices[0].message.content is not None
strict = {"type": "function", "function": {**TOOL["function"], "strict": True}}
with client.chat.completions.stream(model=MODEL, messages=ASK, tools=[strict], tool_choice="required", max_tokens=300) as stream:
    message = stream.get_final_completion().choices[0].message
result = [*ASK, message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "done"}]
assert client.chat.completions.create(messages=result, tools=[TOOL], **GREEDY).choices[0].message.content is not None

begun = [*ASK, {"role": "assistant", "content": "My favourite colour is"}]
goes_on = client.chat.completions.create(messages=begun, extra_body={"continue_final_message": True, "add_generation_prompt": False}, **GREEDY)
anew = client.chat.completions.create(messages=begun, **GREEDY)
assert goes_on.usage.prompt_tokens < anew.usage.prompt_tokens and goes_on.choices[0].message.content, (goes_on, anew)

if hasattr(client, "responses"):
    response = client.responses.create(model=MODEL, input="Name a colour.", max_output_tokens=16, temperature=0)
    assert response.output_text and response.usage.output_tokens > 0
    kinds, streamed = [], ""
    for event in client.responses.create(model=MODEL, input="Name a colour.", max_output_tokens=16, temperature=0, stream=True):
        kinds.append(event.type)
        streamed += event.delta if event.type == "response.output_text.delta" else ""
    assert streamed == response.output_text
    assert kinds[0] == "response.created" and kinds[-1] in ("response.completed", "response.incomplete"), kinds
    tool = {"type": "function", "name": "paint", **{k: v for k, v in TOOL["function"].items() if k != "name"}}
    called = client.responses.create(model=MODEL, input=ASK, tools=[tool], tool_choice="required", max_output_tokens=300)
    outputs = [{"type": "function_call_output", "call_id": item.call_id, "output": "done"} for item in called.output if item.type == "function_call"]
    assert outputs, called
    back = client.responses.create(model=MODEL, input=[*ASK, *called.output, *outputs], tools=[tool], max_output_tokens=4)
    assert back.status in ("completed", "incomplete"), back

assert failing(openai.NotFoundError, lambda: client.chat.completions.create(model="gpt-9", messages=ASK)).code == "model_not_found"
assert failing(openai.BadRequestError, lambda: client.chat.completions.create(model=MODEL, messages=ASK, temperature=-1)).param == "temperature"
long = [{"role": "user", "content": "word " * 20000}]
assert failing(openai.BadRequestError, lambda: client.chat.completions.create(model=MODEL, messages=long)).code == "context_length_exceeded"

# A client that leaves is not served on.
for chunk in client.chat.completions.create(model=MODEL, messages=ASK, max_tokens=2000, stream=True, extra_body={"ignore_eos": True}):
    break
print(f"openai {openai.__version__}: ok")
