"""What the clients ollama, litellm and langchain-openai of Python do with the server at $LAPWING_URL."""

import json
import os

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
print("ollama: ok")

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

chat = ChatOpenAI(model=MODEL, base_url=f"{URL}/v1", api_key="any", max_tokens=12, temperature=0)
assert chat.invoke("Name a colour.").content == text
assert "".join(part.content for part in chat.stream("Name a colour.")) == text
vectors = OpenAIEmbeddings(model=MODEL, base_url=f"{URL}/v1", api_key="any", check_embedding_ctx_length=False)
assert len(vectors.embed_documents(["a", "b"])) == 2
print("langchain-openai: ok")
