"""Copies of GGUF files with other metadata or tensors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
from gguf import GGUFValueType as Kind


def begun(reader: gguf.GGUFReader, target: Path, changed: Callable[[str, Any], Any] = lambda _, value: value) -> gguf.GGUFWriter:
    """A writer with the metadata of a file. `changed` gets each key with its value, and returns the value to write; empty ones are left
    out."""
    writer = gguf.GGUFWriter(target, str(reader.fields["general.architecture"].contents()))
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        kind, value = field.types[0], changed(name, field.contents())
        if value is not None and not (kind == Kind.ARRAY and len(value) == 0):
            writer.add_key_value(name, value, kind, field.types[-1] if kind == Kind.ARRAY else None)
    return writer


def finish(writer: gguf.GGUFWriter) -> None:
    """Writes the file."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def with_a_layer_more(reader: gguf.GGUFReader, target: Path) -> tuple[gguf.GGUFWriter, int]:
    """A writer with the metadata of a file and of a layer more, which predicts a second token; and the number of layers before."""
    arch = reader.fields["general.architecture"].contents()
    layers = reader.fields[f"{arch}.block_count"].contents()

    def changed(name: str, value: Any) -> Any:
        if name == f"{arch}.nextn_predict_layers":
            return None
        if name == f"{arch}.block_count":
            return layers + 1
        is_of_layers = name.startswith(arch) and isinstance(value, list) and len(value) == layers
        return [*value, value[-1]] if is_of_layers else value

    writer = begun(reader, target, changed)
    writer.add_uint32(f"{arch}.nextn_predict_layers", 1)
    return writer, layers
