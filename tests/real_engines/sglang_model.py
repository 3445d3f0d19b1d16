"""Run by the engine's own Python: a GGUF file becomes a model folder of safetensors shards.

python sglang_model.py FILE.gguf FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import transformers

SHARD = "60MB"
"""Small enough for a bar of several shards; the token embedding alone is larger, and has one of its own."""


def main(source: Path, target: Path) -> None:
    """Weights, configuration and tokenizer; 540 MB in 32 bits."""
    where = {"pretrained_model_name_or_path": source.parent, "gguf_file": source.name}
    unpacked = transformers.GgufConfig(dequantize=True)
    packed = transformers.AutoModelForCausalLM.from_pretrained(
        **where, dtype=torch.float32, quantization_config=unpacked
    )
    config = transformers.LlamaConfig.from_dict(
        {name: value for name, value in packed.config.to_dict().items() if name != "quantization_config"}
    )
    plain = transformers.LlamaForCausalLM(config)
    plain.load_state_dict(packed.state_dict())
    plain.tie_weights()
    plain.save_pretrained(target, max_shard_size=SHARD)
    transformers.AutoTokenizer.from_pretrained(**where).save_pretrained(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
