"""Makes a model with the vocabulary and the chat template of another one, and few random weights: fast, with long texts.

    python tiny_model.py OTHER.gguf OUT.gguf
"""

import sys

import numpy
from gguf import GGUFReader, GGUFValueType, GGUFWriter

LAYERS, WIDTH, HEADS, KV_HEADS, FORWARD, CONTEXT = 2, 64, 4, 2, 128, 16384


def copy_vocabulary(reader, writer):
    for key, field in reader.fields.items():
        if not key.startswith("tokenizer."):
            continue
        kind = field.types[0]
        if kind == GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), kind)
    return len(reader.fields["tokenizer.ggml.tokens"].contents())


def main(other, out):
    reader = GGUFReader(other)
    writer = GGUFWriter(out, "llama")
    writer.add_name("random weights")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    vocabulary = copy_vocabulary(reader, writer)

    random = numpy.random.default_rng(1)

    def weights(name, rows, columns):
        values = random.standard_normal((rows, columns)) / numpy.sqrt(columns)
        writer.add_tensor(f"{name}.weight", values.astype(numpy.float16))

    def norm(name):
        writer.add_tensor(f"{name}.weight", numpy.ones(WIDTH, numpy.float32))

    weights("token_embd", vocabulary, WIDTH)
    for layer in range(LAYERS):
        of = f"blk.{layer}."
        norm(of + "attn_norm")
        weights(of + "attn_q", WIDTH, WIDTH)
        weights(of + "attn_k", WIDTH * KV_HEADS // HEADS, WIDTH)
        weights(of + "attn_v", WIDTH * KV_HEADS // HEADS, WIDTH)
        weights(of + "attn_output", WIDTH, WIDTH)
        norm(of + "ffn_norm")
        weights(of + "ffn_gate", FORWARD, WIDTH)
        weights(of + "ffn_up", FORWARD, WIDTH)
        weights(of + "ffn_down", WIDTH, FORWARD)
    norm("output_norm")
    # Without this, the answer of a model with random weights repeats the last token of its prompt.
    weights("output", vocabulary, WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
