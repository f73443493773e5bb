"""What OpenAI's client gets: answers, streams, calls of functions, structured output, log-probabilities and errors."""

import json

import openai

QUESTION = [{"role": "user", "content": "Name the capital of France in one sentence."}]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "people": {"type": "integer", "minimum": 0, "maximum": 99999999}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {"name": "look_up", "description": "Looks up a city", "parameters": SCHEMA},
}


def refused(ask):
    """The status and the message of a request that is refused."""
    try:
        ask()
    except openai.APIStatusError as error:
        return error.status_code, str(error.message)
    return 200, ""


def check(report, fleet, model):
    """Checks everything on a fleet whose model follows instructions."""
    client = openai.OpenAI(base_url=f"{fleet.url}/v1", api_key="unused", max_retries=0, timeout=300)

    def chat(**options):
        options = {"messages": QUESTION, "max_tokens": 32, "temperature": 0} | options
        return client.chat.completions.create(model=model, **options)

    whole = chat()
    text = whole.choices[0].message.content
    report.add("an answer of the openai client", repr(text), "Paris" in text)
    counted = whole.usage.prompt_tokens > 8 and whole.usage.completion_tokens > 4
    report.add("its tokens are counted", f"{whole.usage.prompt_tokens} + {whole.usage.completion_tokens}", counted)

    pieces, usage = [], None
    for event in chat(stream=True, stream_options={"include_usage": True}):
        pieces += [choice.delta.content for choice in event.choices if choice.delta.content]
        usage = event.usage or usage
    is_same = "".join(pieces) == text and len(pieces) > 4
    report.add("a stream has the same text in pieces", f"{len(pieces)} pieces", is_same)
    same = usage and usage.completion_tokens == whole.usage.completion_tokens
    report.add("a stream counts the same tokens", usage and usage.completion_tokens, bool(same))

    stopped = chat(stop=["Paris"]).choices[0]
    is_stopped = stopped.finish_reason == "stop" and stopped.message.content == text.split("Paris")[0]
    report.add("a stop text ends the answer and is left out", repr(stopped.message.content), is_stopped)
    story = [{"role": "user", "content": "Tell me a story."}]
    seeds = [chat(messages=story, temperature=2, seed=seed).choices[0].message.content for seed in (7, 7, 8)]
    is_seeded = seeds[0] == seeds[1] and seeds[0] != seeds[2]
    report.add("a seed repeats a sampled answer, another one does not", f"{len(set(seeds))} texts of 3", is_seeded)

    format_ = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA, "strict": True}}
    found = chat(response_format=format_, max_tokens=96).choices[0].message.content
    report.add("structured output follows its schema", " ".join(found.split()), follows(found))
    regex = chat(extra_body={"guided_regex": "(yes|no), [0-9]{2}"})
    regex = regex.choices[0].message.content
    report.add("a regular expression holds", repr(regex), regex[-4:-2] == ", " and regex[-2:].isdigit())

    choice = {"type": "function", "function": {"name": "look_up"}}
    called = chat(tools=[TOOL], tool_choice=choice, max_tokens=96).choices[0].message.tool_calls or []
    arguments = called[0].function.arguments if called else ""
    is_call = bool(called) and called[0].function.name == "look_up" and follows(arguments)
    report.add("a function that has to be called is called with valid arguments", " ".join(arguments.split()), is_call)

    content = chat(logprobs=True, top_logprobs=3, max_tokens=4).choices[0].logprobs.content
    best = all(one.logprob == max(top.logprob for top in one.top_logprobs) for one in content)
    is_complete = len(content) == 4 and all(len(one.top_logprobs) == 3 for one in content)
    report.add("log-probabilities of each token and of three candidates", len(content), best and is_complete)

    errors(report, chat)


def follows(text):
    """Whether a text is JSON of the schema."""
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return list(found) == ["city", "people"] and isinstance(found["people"], int)


def errors(report, chat):
    """Checks that each wrong request is refused by name."""
    long = [{"role": "user", "content": "word " * 20000}]
    wrong = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "no-such-type"}}}
    rows = [
        ("a prompt that is too long", lambda: chat(messages=long), "context"),
        ("two answers at the same time", lambda: chat(n=2, temperature=1), "ask once for each answer"),
        ("a schema that is none", lambda: chat(response_format=wrong), "no-such-type"),
    ]
    for what, ask, word in rows:
        status, message = refused(ask)
        report.add(f"{what} is refused by name", f"{status} {message[:150]}", status == 400 and word in message)
