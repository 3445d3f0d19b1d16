"""The home folder of the demo host: its programs and its model folders, as small as they can be and still be real."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import ddconsole
from ddconsole.demo.host_state import is_setting

TARGET, DRAFTER = "models/Toy-K2.6", "models/Toy-K2.6-DFlash"
SHARDS, DRAFT_SHARDS = 64, 3
"""Files of the target, enough of them to watch, and of the drafter."""

KERNEL_CACHES = (".triton/cache", ".cache/flashinfer")
"""Where real kernels would be kept; the toy has none to compile, so its first boot is like any other."""

TRAINED_BLOCK_SIZE = 8

PROGRAMS = {"nvidia-smi": "ddconsole.demo.nvidia_smi", "ddconsole-toy-engine": "ddconsole.demo.engine"}

_EMPTY_SAFETENSORS = (2).to_bytes(8, "little") + b"{}"


def prepare_home(home: Path) -> None:
    """Make `home` complete; what is there already is left or replaced by the same."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "run").mkdir(exist_ok=True)
    _write_programs(home / "bin")
    _write_target(home / TARGET)
    _write_drafter(home / DRAFTER)
    for cache in KERNEL_CACHES:
        (home / cache).mkdir(parents=True, exist_ok=True)
        _replace(home / cache / "README", "The toy engine compiles no kernels.\n")


def _write_programs(folder: Path) -> None:
    """Wrappers around this very interpreter and package, whatever is on the PATH."""
    folder.mkdir(exist_ok=True)
    source = shlex.quote(str(Path(ddconsole.__file__).parents[1]))
    for name, module in PROGRAMS.items():
        text = (
            "#!/bin/sh\n"
            f'PYTHONPATH={source}${{PYTHONPATH:+":$PYTHONPATH"}} exec {shlex.quote(sys.executable)} -m {module} "$@"\n'
        )
        _replace(folder / name, text, mode=0o755)


def _write_target(folder: Path) -> None:
    _write_shards(folder, SHARDS)
    config = {"architectures": ["ToyForCausalLM"], "model_type": "toy", "num_hidden_layers": SHARDS}
    _replace(folder / "config.json", json.dumps(config | {"max_position_embeddings": 65536}, indent=1))


def _write_drafter(folder: Path) -> None:
    _write_shards(folder, DRAFT_SHARDS)
    config = {
        "architectures": ["DFlashDraftModel"],
        "model_type": "toy_dflash",
        "dflash_config": {"block_size": TRAINED_BLOCK_SIZE},
    }
    _replace(folder / "config.json", json.dumps(config, indent=1))


def _write_shards(folder: Path, count: int) -> None:
    """Files as real as they can be without weights, and the index that names them."""
    folder.mkdir(parents=True, exist_ok=True)
    shards = [f"model-{number:05d}-of-{count:05d}.safetensors" for number in range(1, count + 1)]
    for shard in shards:
        if not (folder / shard).exists():
            (folder / shard).write_bytes(_EMPTY_SAFETENSORS)
    weights = {f"model.layers.{number}.weight": shard for number, shard in enumerate(shards)}
    index = {"metadata": {"total_size": len(_EMPTY_SAFETENSORS) * count}, "weight_map": weights}
    _replace(folder / "model.safetensors.index.json", json.dumps(index, indent=1))


def _replace(path: Path, text: str, mode: int = 0o644) -> None:
    """Whole or not at all: a running host may be reading it."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.chmod(mode)
    part.replace(path)


def command_environment(home: Path) -> dict[str, str]:
    """What every command on the demo host finds in its environment, and nothing else of ours."""
    passed = {name: value for name, value in os.environ.items() if is_setting(name)}
    return passed | {
        "DDCONSOLE_DEMO_HOME": str(home),
        "HOME": str(home),
        "USER": "demo",
        "LOGNAME": "demo",
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "PATH": os.pathsep.join((str(home / "bin"), os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"))),
    }
