"""What is found before a launch: rules of the config, and the state of the host."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.ports import Finding
from ddconsole.engines.launch.ports import choose_port
from ddconsole.engines.sglang.preflight import block_size_in, check_disk, preflight, trained_block_size
from ddconsole.engines.sglang.rules import check_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ddconsole.core.profile import Profile

    MakeProfile = Callable[..., Profile]

TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=2, window=2048)


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
        (tree(budget=7), 8, [("note", "budget-is-spine")]),
        (tree(topk=6), 8, [("note", "topk-cap-unused")]),
        (tree(topk=1), 8, [("note", "topk-one")]),
        (tree(page_size="64"), 8, [("block", "page-size")]),
        (tree(budget=7, page_size="64"), 8, [("note", "budget-is-spine"), ("warn", "page-size")]),
        (tree(attention_backend="fa3"), 8, [("warn", "tree-backend")]),
        (tree(port="1"), 8, [("block", "spelling")]),
        (Config(Algorithm.CHAIN, 8, window=2048), 8, []),
        (Config(Algorithm.CHAIN, 16, window=8, args=(("page-size", "64"),)), 8,
         [("warn", "trained-block-size"), ("block", "window-below-block")]),
        (Config(Algorithm.OFF), None, []),
    ],
)  # fmt: skip
def test_rules(make_profile: MakeProfile, config: Config, trained: int | None, expected: list[tuple[str, str]]) -> None:
    """Each rule by its level and its code."""
    assert [(f.level, f.code) for f in check_config(make_profile(), config, trained)] == expected


def test_the_warning_carries_the_published_loss(make_profile: MakeProfile) -> None:
    """Trained at 8, run at 16."""
    (finding,) = check_config(make_profile(), tree(16, 26), 8)
    assert "4.61 -> 4.28" in finding.text


@pytest.mark.parametrize(
    ("config", "size"),
    [
        ({"dflash_config": {"block_size": 8}, "block_size": 16}, 8),
        ({"block_size": 16}, 16),
        ({"dflash_config": {}}, None),
        ({"dflash_config": []}, None),
        ([], None),
    ],
)
def test_the_trained_block_size_is_read_where_the_engine_reads_it(config: Any, size: int | None) -> None:
    """First in dflash_config, then at the top."""
    assert block_size_in(json.dumps(config)) == size


def test_text_that_is_no_json_has_no_block_size() -> None:
    """A missing file answers with nothing."""
    assert block_size_in("") is None


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, first in PATH a folder for programs."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for name in ("HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def program(home: Path, name: str, script: str) -> None:
    """A program on the host's PATH."""
    path = home / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def drafter(folder: Path, size: int) -> None:
    """A drafter's config.json."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"dflash_config": {"block_size": size}}))


async def test_the_drafters_config_is_read_on_the_host(home: Path, make_profile: MakeProfile) -> None:
    """By its path below the home, or by its name in the cache; the profile's word goes first."""
    drafter(home / "models/D one", 4)
    drafter(home / ".cache/huggingface/hub/models--SubSir--K/snapshots/abc", 8)
    host = LocalHost()
    assert await trained_block_size(make_profile({"drafter": "models/D one"}), host) == 4
    assert await trained_block_size(make_profile({"drafter": "SubSir/K"}), host) == 8
    assert await trained_block_size(make_profile({"drafter": "SubSir/none"}), host) is None
    assert await trained_block_size(make_profile({"drafter": "SubSir/K", "trained_block_size": "16"}), host) == 16


def codes(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    """Level and code of each."""
    return [(finding.level, finding.code) for finding in findings]


async def test_a_host_in_its_good_state_has_nothing_to_say(home: Path, make_profile: MakeProfile) -> None:
    """Command there, port free, cards free, drafter as trained."""
    program(home, "nvidia-smi", "exit 0")
    program(home, "my-engine", "exit 0")
    drafter(home / "D", 8)
    host = LocalHost()
    found = await preflight(make_profile({"command": ["my-engine"]}), host, TREE, await choose_port(host))
    assert [finding for finding in found if finding.code != "disk"] == []


async def test_a_host_in_a_bad_state_says_all_of_it_what_blocks_first(home: Path, make_profile: MakeProfile) -> None:
    """No command, port held, a foreign process on two cards."""
    program(
        home,
        "nvidia-smi",
        f'printf "%s\\n" "{os.getpid()}, GPU-a, 61200" "{os.getpid()}, GPU-b, 100" "999999, GPU-a, [N/A]"',
    )
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    found = await preflight(make_profile({"command": ["no-such-engine"]}), LocalHost(), tree(16, 26), port)
    server.close()
    await server.wait_closed()
    kinds = [kind for kind in codes(found) if kind[1] != "disk"]
    assert kinds == [
        ("block", "no-command"), ("block", "port-held"), ("warn", "gpu-busy"), ("warn", "gpu-busy"),
        ("note", "trained-block-size-unknown"),
    ]  # fmt: skip
    texts = [finding.text for finding in found]
    assert any(f"pid {os.getpid()}" in text and "holds 61,300 MiB on 2 cards" in text for text in texts)
    assert any("pid 999999 (?) holds memory on 1 card" in text for text in texts)
    assert any(f"port {port} is held by pid {os.getpid()}" in text for text in texts)


async def test_error_text_of_nvidia_smi_is_a_finding_not_a_process(home: Path, make_profile: MakeProfile) -> None:
    """A driver mismatch."""
    program(home, "nvidia-smi", 'echo "Failed to initialize NVML: Driver/library version mismatch"; exit 18')
    host = LocalHost()
    found = await preflight(make_profile(), host, Config(Algorithm.OFF), await choose_port(host))
    assert ("warn", "nvidia-smi") in codes(found)
    assert any("version mismatch" in finding.text for finding in found)


@pytest.mark.parametrize(
    ("kib", "level"), [("2000000", None), ("500000", "warn"), ("1000", "block"), ("", None)]
)  # fmt: skip
async def test_a_full_disk_is_told(home: Path, kib: str, level: str | None) -> None:
    """For the folder that will be made, by its nearest parent."""
    program(home, "df", f'echo "Filesystem 1024-blocks Used Available"; echo "x 1 1 {kib}"')
    found = [finding async for finding in check_disk("~/a/b c", LocalHost())]
    assert [finding.level for finding in found] == ([] if level is None else [level])
