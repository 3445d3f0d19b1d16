"""What is found before a launch, by the real scripts on this machine: rules of the config, state of the host."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import UnreachableError
from ddconsole.core.ports import Finding, Preflight
from ddconsole.engines.launch.ports import choose_port
from ddconsole.engines.sglang.preflight import preflight
from ddconsole.engines.sglang.rules import check_config

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ddconsole.core.profile import Profile

    MakeProfile = Callable[..., Profile]

TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=2, window=2048)
SAYS_OF_THIS_MACHINE = {
    "jit-cold",
    "disk-low",
    "tmp-low",
    "shm-small",
    "memory-low",
    "cpu-governor",
    "xid",
    "toolkit-old",
}
"""Findings that depend on where the tests run."""

HELP = """
usage: engine [-h]

options:
  -h, --help            show this help message and exit
  --model-path MODEL_PATH, --model MODEL_PATH
  --host HOST           Address. --port is another flag.
  --port PORT
  --speculative-algorithm SPECULATIVE_ALGORITHM
  --speculative-draft-model-path PATH
  --speculative-num-draft-tokens N
  --speculative-ddtree-budget N
  --speculative-draft-window-size N
  --version
"""


def tree(b: int = 8, budget: int = 12, topk: int | None = 2, window: int | None = 2048, **args: str) -> Config:
    """A tree with some knobs changed."""
    return Config(Algorithm.TREE, b, budget, topk, window, tuple(args.items()))


@pytest.mark.parametrize(
    ("config", "trained", "expected"),
    [
        (tree(), 8, []),
        (tree(16, 26), 8, [("warn", "trained-block-size")]),
        (tree(4, 12, 5), 8, [("note", "trained-block-size-smaller")]),
        (tree(), None, [("note", "trained-block-size-unknown")]),
        (tree(window=4), 8, [("block", "window-below-block")]),
        (tree(window=8), 8, []),
        (tree(window=None), 8, []),
        (tree(budget=5), 8, [("warn", "budget-below-depth")]),
        (tree(budget=7), 8, [("note", "spine-only")]),
        (tree(topk=6), 8, [("note", "topk-not-reached")]),
        (tree(topk=1), 8, [("note", "topk-one")]),
        (tree(page_size="64"), 8, [("block", "page-size")]),
        (tree(budget=7, page_size="64"), 8, [("note", "spine-only"), ("block", "page-size")]),
        (tree(budget=5, page_size="16"), 8, [("warn", "budget-below-depth"), ("block", "page-size")]),
        (tree(attention_backend="fa3"), 8, [("warn", "tree-backend")]),
        (tree(prefill_attention_backend="fa3"), 8, [("warn", "tree-backend")]),
        (tree(attention_backend="triton", decode_attention_backend="flashinfer"), 8, [("warn", "tree-backend")]),
        (tree(prefill_attention_backend="fa3", decode_attention_backend="fa4"), 8, [("warn", "tree-backend")] * 2),
        (tree(attention_backend="fa3", prefill_attention_backend="triton", decode_attention_backend="triton"), 8, []),
        (tree(budget=7, decode_attention_backend="fa3"), 8, [("note", "spine-only")]),
        (tree(port="1"), 8, [("block", "spelling")]),
        (tree(pp_size="2"), 8, [("block", "pipeline-parallel")]),
        (tree(enable_dp_attention="true"), 8, [("block", "dp-attention")]),
        (tree(enable_dp_attention="true", enable_dp_lm_head="true"), 8, []),
        (Config(Algorithm.CHAIN, 8, window=2048), 8, []),
        (Config(Algorithm.CHAIN, 16, window=8, args=(("page-size", "64"),)), 8,
         [("block", "window-below-block"), ("warn", "trained-block-size")]),
        (Config(Algorithm.OFF), None, []),
    ],
)  # fmt: skip
def test_rules(make_profile: MakeProfile, config: Config, trained: int | None, expected: list[tuple[str, str]]) -> None:
    """Each rule by its level and its code."""
    assert [(f.level, f.code) for f in check_config(make_profile(), config, trained)] == expected


def test_the_stage_whose_backend_cannot_verify_a_tree_is_named(make_profile: MakeProfile) -> None:
    """Prefill and decode have flags of their own, which go before the common one."""
    config = tree(attention_backend="triton", decode_attention_backend="flashinfer")
    (finding,) = check_config(make_profile(), config, 8)
    assert finding.text.startswith("decode attention backend flashinfer with a tree")
    assert finding.advice.startswith("set arg.decode-attention-backend=triton")


def test_the_warning_carries_the_published_loss(make_profile: MakeProfile) -> None:
    """Trained at 8, run at 16."""
    (finding,) = check_config(make_profile(), tree(16, 26), 8)
    assert "4.61 → 4.28" in finding.advice


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, first in PATH a folder for programs; an engine, a target and a drafter as they should be."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    program(tmp_path, "my-engine", f"if [ $1 = --version ]; then echo engine 1.2.3; else cat <<'END'{HELP}END\nfi")
    checkpoint(tmp_path / "M", shards=4)
    drafter(tmp_path / "D", 8)
    return tmp_path


def program(home: Path, name: str, script: str) -> None:
    """A program on the host's PATH."""
    path = home / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def checkpoint(folder: Path, shards: int, **config: Any) -> None:
    """A model's folder with an index and all its files."""
    folder.mkdir(parents=True)
    names = [f"model-{n:05d}-of-{shards:05d}.safetensors" for n in range(1, shards + 1)]
    for name in names:
        (folder / name).write_bytes(b"x" * 100)
    index = {"metadata": {"total_size": 90 * shards}, "weight_map": {f"layer.{name}": name for name in names}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    (folder / "config.json").write_text(json.dumps(config, indent=2))


def sha256_of(path: str) -> str:
    """Of a file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def drafter(folder: Path, size: int) -> None:
    """A drafter's folder, one shard."""
    checkpoint(folder, 1, dflash_config={"block_size": size})


async def found(
    make_profile: MakeProfile, config: Config = TREE, *, port: int | None = None, **engine: Any
) -> Preflight:
    """The preflight of a profile on this machine."""
    host = LocalHost()
    profile = make_profile({"command": ["my-engine"]} | engine)
    try:
        return await preflight(profile, host, config, port or await choose_port(host))
    finally:
        await host.close()


def codes(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """Level and code of each, without those that speak of the machine that the test runs on."""
    return [(finding.level, finding.code) for finding in findings if finding.code not in SAYS_OF_THIS_MACHINE]


async def test_a_host_in_its_good_state_has_nothing_to_say(home: Path, make_profile: MakeProfile) -> None:
    """Command and flags there, port free, weights whole, drafter as trained; no nvidia-smi is a note."""
    answer = await found(make_profile)
    assert codes(answer.findings) == [("note", "no-nvidia-smi")]
    seen = {(one.topic, one.name): one.text for one in answer.checked}
    assert seen["engine", "version"] == "1.2.3"
    assert seen["engine", "flags"].startswith("10 (read now")
    assert seen["model", "target"] == "M: 4 shards, 400 bytes"
    assert seen["model", "trained at"] == "block size 8 (config.json)"
    assert answer.facts["trained_block_size"] == {"value": 8, "by": "config.json"}
    assert answer.facts["drafter"]["config_sha256"] == sha256_of(f"{answer.facts['drafter']['folder']}/config.json")
    json.dumps(answer.facts, allow_nan=False)


async def test_a_host_in_a_bad_state_says_all_of_it_what_blocks_first(home: Path, make_profile: MakeProfile) -> None:
    """No command, port held, a foreign process on two cards."""
    me = os.getpid()
    rows = [
        f"{n}, GPU-{n}, card, 12.0, 580.1, 97887, 2, 1, 5, 16, 16, Disabled, Enabled, 600, 210, 405, 2430"
        for n in (0, 1)
    ]
    apps = [f"{me}, GPU-0, 61200", f"{me}, GPU-1, 100", "999999, GPU-0, [N/A]"]
    lines = {"gpu": rows, "compute-apps": apps}
    cases = "\n".join(f"--query-{name}=*) printf '%s\\n' {' '.join(map(repr, out))} ;;" for name, out in lines.items())
    program(home, "nvidia-smi", f"case $1 in\n{cases}\nesac")
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    answer = await found(make_profile, tree(16, 26), port=port, command=["no-such-engine"])
    server.close()
    await server.wait_closed()
    assert codes(answer.findings) == [
        ("block", "no-command"), ("block", "port-held"),
        ("warn", "trained-block-size"), ("warn", "gpu-busy"), ("warn", "gpu-busy"),
    ]  # fmt: skip
    texts = [finding.text for finding in answer.findings]
    assert any(f"pid {me}" in text and "holds 61,300 MiB on 2 cards" in text for text in texts)
    assert any("pid 999999 (?) holds memory on 1 card" in text for text in texts)
    assert any(f"port {port} is held by pid {me}" in text and " since 2" in text for text in texts)


async def test_error_text_of_nvidia_smi_is_a_finding_not_a_process(home: Path, make_profile: MakeProfile) -> None:
    """With a driver mismatch no engine can start; the second line of that message is no second finding."""
    program(home, "nvidia-smi", 'printf "Failed to initialize NVML: Driver/library version mismatch\\nNVML library '
            'version: 580.95\\n"; exit 18')  # fmt: skip
    answer = await found(make_profile)
    assert codes(answer.findings) == [("block", "driver-mismatch")]
    assert answer.facts["gpu_processes"] == []


async def test_a_field_that_the_driver_does_not_know_is_not_asked_again(home: Path, make_profile: MakeProfile) -> None:
    """Drivers before 510 have no compute_cap; everything else is still told."""
    program(
        home,
        "nvidia-smi",
        """case $1 in
*compute_cap*) echo 'Field "compute_cap" is not a valid field to query.' ;;
--query-gpu=*) echo '0, GPU-0, card, 470.1, 97887, 2, 1, 5, 16, 16, [N/A], Enabled, 600, 210, 405, 2430' ;;
esac""",
    )
    answer = await found(make_profile)
    assert codes(answer.findings) == []
    assert answer.facts["cuda"]["driver"] == ["470.1"]
    assert answer.facts["cuda"]["compute_capability"] == []


async def test_shards_that_are_missing_empty_or_cut_are_told(home: Path, make_profile: MakeProfile) -> None:
    """By name; a dangling link into a cache is a missing shard."""
    target = home / "M"
    (target / "model-00002-of-00004.safetensors").write_bytes(b"")
    (target / "model-00003-of-00004.safetensors").unlink()
    (target / "model-00003-of-00004.safetensors").symlink_to(target / "blobs" / "none")
    (home / "D" / "model-00001-of-00001.safetensors").write_bytes(b"x" * 10)
    answer = await found(make_profile)
    assert codes(answer.blocking) == [("block", "shard-missing"), ("block", "shard-empty")]
    assert "1 of 4 shards of the target are missing: model-00003-of-00004" in answer.findings[0].text
    assert ("warn", "shards-short") in codes(answer.findings)


async def test_a_model_is_found_in_the_hugging_face_cache_at_its_revision(
    home: Path, make_profile: MakeProfile
) -> None:
    """refs/main says which of two snapshots counts; the profile's word on the block size goes before it."""
    repo = home / ".cache/huggingface/hub/models--SubSir--K"
    drafter(repo / "snapshots/aaa", 4)
    drafter(repo / "snapshots/bbb", 8)
    (repo / "refs").mkdir()
    (repo / "refs/main").write_text("bbb")
    answer = await found(make_profile, drafter="SubSir/K")
    assert answer.facts["trained_block_size"]["value"] == 8
    answer = await found(make_profile, drafter="SubSir/K", trained_block_size="16")
    assert answer.facts["trained_block_size"] == {"value": 16, "by": "profile"}
    assert ("warn", "trained-block-size-differs") in codes(answer.findings)


@pytest.mark.parametrize(("model", "level"), [("/no/such", "block"), ("~/M", "block"), ("some/name", "warn")])
async def test_a_model_that_is_not_there(home: Path, make_profile: MakeProfile, model: str, level: str) -> None:
    """A path has to be; a name would be downloaded. The engine gets ~ as it is, and knows no home."""
    answer = await found(make_profile, model=model)
    assert (level, "model-absent") in codes(answer.findings)


async def test_words_of_the_profile_never_meet_a_shell(home: Path, make_profile: MakeProfile) -> None:
    """Names with quotes, spaces, newlines and substitutions are names."""
    hostile = "M; touch owned\n$(touch owned) `touch owned` '\""
    checkpoint(home / hostile.replace("/", "_"), 1)
    answer = await found(make_profile, model=hostile, env={"X": hostile}, drafter=hostile)
    assert "owned" not in os.listdir(home)
    assert "model-absent" not in [finding.code for finding in answer.findings]


async def test_an_engine_on_the_cpu_needs_no_cards(home: Path, make_profile: MakeProfile) -> None:
    """No word about nvidia-smi, whatever it does."""
    program(home, "nvidia-smi", "echo No devices were found")
    program(home, "my-engine", f"cat <<'END'{HELP}  --device DEVICE\nEND")
    answer = await found(make_profile, Config(Algorithm.OFF), args={"device": "cpu"})
    assert codes(answer.findings) == []
    assert "jit-cold" not in [one.code for one in answer.findings], "it compiles none of those kernels"
    on_cards = await found(make_profile, Config(Algorithm.OFF))
    assert "jit-cold" in [one.code for one in on_cards.findings]


async def test_a_lost_connection_ends_the_preflight(make_profile: MakeProfile) -> None:
    """As the error that the session knows how to treat, not as a group."""

    class Gone:
        name = "gone"

        async def run(self, *args: Any, **kwargs: Any) -> Any:
            raise UnreachableError("the connection is lost")

    with pytest.raises(UnreachableError):
        await preflight(make_profile(), Gone(), TREE, 30000)  # type: ignore[arg-type]


async def test_four_commands_at_most_run_at_a_time(home: Path, make_profile: MakeProfile) -> None:
    """A host with MaxSessions 4 has room for them."""
    running, most, asked = 0, 0, 0

    class Counting(LocalHost):
        async def run(self, *args: Any, **kwargs: Any) -> Any:
            nonlocal running, most, asked
            running, asked = running + 1, asked + 1
            most = max(most, running)
            try:
                return await super().run(*args, **kwargs)
            finally:
                running -= 1

    await preflight(make_profile({"command": ["my-engine"]}), Counting(), TREE, 1)
    assert (most, asked) == (4, 4)
