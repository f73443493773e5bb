"""Makes a model with the vocabulary and the chat template of another one, and few random weights: fast, with long texts.

    python tiny_model.py OTHER.gguf OUT.gguf
"""

import dataclasses
import sys

import numpy
from gguf import GGUFReader, GGUFValueType, GGUFWriter

# Of models whose vocabulary has none.
TEMPLATE = "{% for message in messages %}{{ message.content }}\n{% endfor %}"


@dataclasses.dataclass
class Sizes:
    """Sizes of the model."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    kv_heads: int = 2
    head: int = 16
    forward: int = 128
    context: int = 16384


# Kinds of tokens that are no text: unknown ones, marks, and bytes, which are parts of letters.
NO_TEXT = (2, 3, 6)


def copy_vocabulary(reader, writer):
    """Copies it, and returns which of its tokens are text."""
    for key, field in reader.fields.items():
        if not key.startswith("tokenizer."):
            continue
        kind = field.types[0]
        if kind == GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), kind)
    if "tokenizer.chat_template" not in reader.fields:
        writer.add_chat_template(TEMPLATE)
    kinds = reader.fields["tokenizer.ggml.token_type"].contents()
    return numpy.array([kind not in NO_TEXT for kind in kinds], numpy.float32)


def main(other, out, sizes=None):
    sizes = sizes or Sizes()
    width, queries, keys = sizes.width, sizes.heads * sizes.head, sizes.kv_heads * sizes.head
    reader = GGUFReader(other)
    writer = GGUFWriter(out, "llama")
    writer.add_name("random weights")
    writer.add_context_length(sizes.context)
    writer.add_embedding_length(width)
    writer.add_block_count(sizes.layers)
    writer.add_feed_forward_length(sizes.forward)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.kv_heads)
    writer.add_key_length(sizes.head)
    writer.add_value_length(sizes.head)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(sizes.head)
    is_text = copy_vocabulary(reader, writer)
    vocabulary = len(is_text)

    random = numpy.random.default_rng(1)

    def weights(name, rows, columns, scale=1):
        values = random.standard_normal((rows, columns)) / numpy.sqrt(columns) * scale
        writer.add_tensor(f"{name}.weight", values.astype(numpy.float16))

    def norm(name):
        writer.add_tensor(f"{name}.weight", numpy.ones(width, numpy.float32))

    weights("token_embd", vocabulary, width)
    for layer in range(sizes.layers):
        of = f"blk.{layer}."
        norm(of + "attn_norm")
        weights(of + "attn_q", queries, width)
        weights(of + "attn_k", keys, width)
        weights(of + "attn_v", keys, width)
        weights(of + "attn_output", width, queries)
        norm(of + "ffn_norm")
        weights(of + "ffn_gate", sizes.forward, width)
        weights(of + "ffn_up", sizes.forward, width)
        weights(of + "ffn_down", width, sizes.forward)
    norm("output_norm")
    # Without this, the answer of a model with random weights repeats the last token of its prompt.
    # Answers are text to their end.
    weights("output", vocabulary, width, is_text[:, None])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
