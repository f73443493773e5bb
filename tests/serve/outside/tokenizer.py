"""Writes the tokenizer of a GGUF file with byte-level BPE as a folder of transformers: tokenizer.py MODEL.gguf FOLDER."""
import sys

from gguf import GGUFReader
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

reader = GGUFReader(sys.argv[1])


def strings(name):
    field = reader.fields[name]
    return [bytes(field.parts[at]).decode() for at in field.data]


def number(name):
    field = reader.fields[name]
    return int(field.parts[field.data[0]][0])


tokens = strings("tokenizer.ggml.tokens")
merges = [tuple(merge.split(" ", 1)) for merge in strings("tokenizer.ggml.merges")]
tokenizer = Tokenizer(models.BPE({token: at for at, token in enumerate(tokens)}, merges))
tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
    [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
tokenizer.decoder = decoders.ByteLevel()
end = tokens[number("tokenizer.ggml.eos_token_id")]
PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end, bos_token=end).save_pretrained(sys.argv[2])
