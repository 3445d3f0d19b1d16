"""A run in the place of a service: put back at its end, and stopped at once where nobody has consented."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.scripted import PROFILE, Script, ScriptedLauncher
from runner.world import Opened, tree

from ddconsole.core import events
from ddconsole.core.errors import HostError
from ddconsole.core.ports import Finding
from ddconsole.core.profile import LauncherSection

SERVICE = PROFILE.model_copy(update={"launcher": LauncherSection(kind="systemd", unit="sglang")})


@pytest.fixture
def serviced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted profile names a service."""
    monkeypatch.setattr("fakes.scripted.PROFILE", SERVICE)


def warnings(w: Any) -> list[str]:
    """What was said."""
    return [body.text for body in w.of(events.Warned)]


@pytest.mark.usefixtures("serviced")
async def test_the_service_is_put_back_once_at_the_end_of_a_run(world: Opened) -> None:
    """After the last engine was ended, not between experiments; and it is said."""
    script = Script(restored=("sglang.service is put back as it was: active",))
    async with world(script) as w:
        await w.add(tree(12), tree(16))
        await w.drain()
        assert script.restores == 0
    assert script.living == set()
    assert script.restores == 1
    assert script.restored[0] in warnings(w)


@pytest.mark.usefixtures("serviced")
async def test_an_engine_that_is_kept_keeps_its_place(world: Opened) -> None:
    """--keep-engine: the service is put back by `engine restore`."""
    async with world(keep=True) as w:
        await w.add(tree(12))
        await w.drain()
    assert w.script.restores == 0
    assert len(w.script.living) == 1


@pytest.mark.usefixtures("serviced")
async def test_nothing_is_put_back_beside_an_engine_that_could_not_be_ended(world: Opened) -> None:
    """The service would start on cards that are still full."""
    async with world(Script(remains=("process 7 sglang::scheduler",))) as w:
        await w.add(tree(12))
        await w.drain()
    assert w.script.restores == 0
    assert any("process 7" in line for line in warnings(w))


@pytest.mark.usefixtures("serviced")
async def test_a_service_that_cannot_be_put_back_is_said_with_the_remedy(
    world: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends all the same."""

    async def fail(*_: Any) -> tuple[str, ...]:
        raise HostError("sglang.service could not be put back as it was", evidence=("Job failed",))

    monkeypatch.setattr(ScriptedLauncher, "restore", fail)
    async with world() as w:
        await w.add(tree(12))
        await w.drain()
    (line,) = [line for line in warnings(w) if "put back" in line]
    assert "Job failed" in line
    assert "`ddconsole engine scripted restore`" in line
    assert w.of(events.RunFinished)


async def test_a_profile_without_a_service_asks_for_nothing(world: Opened) -> None:
    """The usual run."""
    async with world() as w:
        await w.add(tree(12))
        await w.drain()
    assert w.script.restores == 0


async def test_without_consent_the_queue_pauses_at_once(world: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same would stand against every experiment: none after the first is burnt."""
    asked: list[tuple[Finding, ...]] = []

    async def refuse(self: Any, host: Any, port: int, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        asked.append(findings)
        return (Finding("block", "service-not-ours", "sglang.service runs (pid 7, root)", "`--take-over`"), *findings)

    monkeypatch.setattr(ScriptedLauncher, "review", refuse)
    async with world(Script(findings=(Finding("block", "port-held", "port 30000 is held by pid 7"),))) as w:
        await w.add(tree(12), tree(16))
        assert await w.drain() == "paused"
        assert w.outcomes() == ["failed"]
        failure = w.of(events.ExperimentFinished)[0].failure  # type: ignore[attr-defined]
        assert failure["cause"] == "service-not-ours"
        assert failure["evidence"] == ["port 30000 is held by pid 7"]
        assert failure["advice"] == "`--take-over`"
        assert any("consent" in line for line in warnings(w))
    assert len(asked) == 1
    assert w.script.launches == []
