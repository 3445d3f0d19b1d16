"""The real engine in trouble: a child that crashes, and a port that another server holds."""

from __future__ import annotations

from typing import Any

from fakes.command import wait_for

from .sshd import is_open
from .steps import Steps
from .world import Run, World, stale_server

Figures = dict[str, Any]

BOOT_S = 300.0
"""A boot takes 22 to 55 s on two idle cores."""


def crash(world: World, steps: Steps) -> Figures:
    """NGRAM is accepted, loads, and dies in the scheduler at the first kernel that has no CPU build."""
    name = world.profile("sglang-ngram", **{"{off: null, ": "{off: NGRAM, "})
    with steps.step("crash of a child, named") as step:
        run = Run(world.cli, name, "--resume", "--accept-new")
        code = run.end(BOOT_S)
        (finished,) = run.of("experiment_finished")
        failure = finished["failure"]
        assert (code, finished["outcome"]) == (1, "failed"), (code, finished)
        assert "copy_all_layer_kv_cache_cpu" in failure["what"], failure
        assert (failure["cause"], failure["phase"]) == ("missing-kernel", "kv"), failure
        assert any("AttributeError" in line for line in failure["evidence"]), failure
        assert "sigquit from a child" in world.engine_log(name)
        step.told = f"{failure['cause']} in {failure['phase']}: {failure['what']}"
    with steps.step("nothing of it is left") as step:
        wait_for(lambda: not world.engines(), what="the crashed engine's processes are gone", seconds=15)
        assert world.json("engine", name, "status")["engines"] == []
        assert not is_open(world.port)
        step.told = "no process, port free, not on record"
    return {"crash": failure["what"]}


def port(world: World, steps: Steps) -> Figures:
    """Held before the launch: found by doctor. Taken while the weights load: found when it says that it is ready."""
    name = world.profile("sglang-port")
    with stale_server(world.port) as pid, steps.step("port held: doctor and launch refuse") as step:
        told = world.json("doctor", name, "--accept-new", code=1)
        (held,) = [one for one in told["findings"] if one["code"] == "port-held"]
        assert held["level"] == "block", held
        assert f"pid {pid}" in held["text"], held
        run = Run(world.cli, name, "--resume", "--accept-new")
        assert run.end(120) == 1
        (finished,) = run.of("experiment_finished")
        assert finished["failure"]["cause"] == "port-held", finished
        assert not world.engines()
        step.told = held["text"]
    with steps.step("port taken while loading: no false ready") as step:
        failure = _taken_while_loading(world, name)
        step.told = failure["what"]
    with steps.step("its engine is gone, the old server is not ours") as step:
        wait_for(lambda: not world.engines(), what="the engine without a port is gone", seconds=15)
        assert world.json("engine", name, "status")["engines"] == []
        step.told = "no process, not on record"
    return {"port": failure["what"]}


def _taken_while_loading(world: World, name: str) -> Figures:
    """The failure of an engine whose log says that it is ready, while an old server answers in its place."""
    world.json("queue", name, "retry", "E1")
    run = Run(world.cli, name, "--resume", "--accept-new")
    run.until("the engine is started", seconds=120, kind="phase", phase="launch", state="done")
    with stale_server(world.port) as pid:
        code = run.end(BOOT_S)
        (finished,) = run.of("experiment_finished")
        failure: Figures = finished["failure"]
        assert (code, failure["cause"]) == (1, "port-held"), (code, failure)
        for words in (f"port {world.port} was held", f"pid {pid}", "since"):
            assert words in failure["what"], failure
        assert not run.of("ready"), "a stale server was taken for the engine"
        assert "fired up" in world.engine_log(name), "the engine's own log was to say that it is ready"
        assert is_open(world.port), "the old server was ended, which is not ours to do"
    return failure
