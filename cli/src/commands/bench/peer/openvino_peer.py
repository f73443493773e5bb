"""Measures OpenVINO GenAI on a GGUF file: one repetition of each test, as JSON on stdout.

usage: MODEL.gguf THREADS TESTS WARM     TESTS: pp512@0,tg128@512,…   WARM: 1 runs each test once before

Prompts are token ids spread over the vocabulary. ppN@D: N / (time to the first token of D + N ids
minus that of D ids); tgN@D: N / time between the first and the last of N + 1 generated tokens after
D ids (one id where D is 0). Precision, quantisation and cache are the defaults.
"""

import json
import sys

import numpy
import openvino
import openvino_genai


# As in measure.rs.
DIFFERENCE_TRIES = 5


def main():
    model, threads, tests, warm = sys.argv[1:5]
    pipe = openvino_genai.LLMPipeline(model, "CPU", INFERENCE_NUM_THREADS=int(threads))
    vocabulary = max(2, len(pipe.get_tokenizer().get_vocab()))
    seed = 0

    def metrics(prompt, generated):
        nonlocal seed
        seed += 1
        ids = numpy.random.default_rng(seed).integers(0, vocabulary, (1, prompt), numpy.int64)
        mask = numpy.ones_like(ids)
        inputs = openvino_genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(mask))
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = generated
        config.min_new_tokens = generated
        config.ignore_eos = True
        config.do_sample = False
        done = pipe.generate(inputs, config)
        if len(done.tokens[0]) != generated:
            sys.exit(f"{len(done.tokens[0])} tokens were generated, not {generated}")
        return done.perf_metrics

    def first_token_seconds(prompt):
        return metrics(prompt, 1).get_ttft().mean / 1e3

    def speed(kind, tokens, depth):
        if kind == "tg":
            return 1e3 / metrics(max(depth, 1), tokens + 1).get_tpot().mean
        for _ in range(DIFFERENCE_TRIES):
            before = first_token_seconds(depth) if depth else 0.0
            seconds = first_token_seconds(depth + tokens) - before
            if seconds > 0.0:
                return tokens / seconds
        sys.exit(
            f"{depth + tokens} tokens took no longer than {depth}, {DIFFERENCE_TRIES} times; measure "
            "more tokens, or let the machine do nothing else"
        )

    results = []
    for test in tests.split(","):
        name, depth = test.split("@")
        kind, tokens, depth = name[:2], int(name[2:]), int(depth)
        for _ in range(1 + int(warm)):
            measured = speed(kind, tokens, depth)
        results.append(
            {"n": tokens, "kind": kind, "depth": depth, "tokens_per_second": measured}
        )
    print(json.dumps({"version": openvino_genai.__version__, "results": results}))


main()
