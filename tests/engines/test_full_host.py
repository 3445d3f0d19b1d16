"""The host's disk is really full: ours can still be ended, nobody takes the host from us, the cause has its name."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.errors import Failure, HostError, RefusedError, UnwritableLeaseError
from ddconsole.core.ports import Completed, LaunchPlan
from ddconsole.engines.launch.deaths import NO_SPACE, death_notes, named_by_disk
from ddconsole.engines.launch.lease import LIFE_S, HostLease
from ddconsole.engines.launch.process import ProcessLauncher
from ddconsole.engines.sglang.bootlog import BootLog

MOUNT = 'mount -t tmpfs -o size=512k,mode=700 tmpfs "$1" && echo mounted && exec sleep 600'


@pytest.fixture
def small(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A file system of 512 KiB at a folder, in a mount namespace of its own, and the process that keeps it."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        pytest.skip("needs unshare and nsenter (util-linux)")
    place = tmp_path / "small"
    place.mkdir()
    words = ["unshare", "--mount", "sh", "-c", MOUNT, "sh", str(place)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        try:
            if keeper.stdout.readline() != "mounted\n":
                pytest.skip("this login may not mount in a namespace")
            yield place, keeper.pid
        finally:
            keeper.kill()


class Inside(LocalHost):
    """This machine as it is seen in that namespace."""

    def __init__(self, place: Path, pid: int) -> None:
        super().__init__("small")
        self._pid = pid
        self.place = place

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 30.0) -> Completed:
        return await super().run(["nsenter", f"--mount=/proc/{self._pid}/ns/mnt", *argv], stdin=stdin, timeout=timeout)

    async def fill(self) -> None:
        """Write until not one byte more goes in."""
        done = await self.run(["sh", "-c", 'cat /dev/zero >"$1/ballast"', "sh", str(self.place)])
        assert NO_SPACE in done.stderr

    async def text(self, name: str) -> str:
        return (await self.run(["cat", f"{self.place}/{name}"])).stdout

    def lease(self, token: str, owner: str, life_s: int = LIFE_S) -> HostLease:
        return HostLease(str(self.place), token * 32, owner, life_s)


@pytest.fixture
async def host(small: tuple[Path, int]) -> AsyncIterator[Inside]:
    inside = Inside(*small)
    yield inside
    await inside.close()


async def test_a_lease_is_renewed_in_place_where_no_new_file_has_room(host: Inside) -> None:
    """Its time runs on; others are refused as before, and nothing half written is left beside it."""
    ann, bob = host.lease("a", "ann@laptop", 600), host.lease("b", "bob@desk")
    await ann.take(host)
    before = int((await host.text("lease")).splitlines()[2])
    await host.fill()
    await host.lease("a", "ann@laptop", 900).take(host)
    lines = (await host.text("lease")).splitlines()
    assert int(lines[2]) >= before + 290
    assert lines[3] == "ann@laptop"
    with pytest.raises(RefusedError, match="ann@laptop"):
        await bob.take(host)
    assert "lease.new" not in (await host.run(["ls", str(host.place)])).stdout


async def test_a_lease_that_has_no_room_at_all_is_nobodys_and_not_ours(host: Inside) -> None:
    """Told from one in other hands, with the system's words for why."""
    await host.fill()
    with pytest.raises(UnwritableLeaseError) as caught:
        await host.lease("a", "ann@laptop").take(host)
    assert any(NO_SPACE in line for line in caught.value.evidence)
    assert "lease\n" not in (await host.run(["ls", str(host.place)])).stdout


async def test_an_engine_of_ours_is_ended_on_a_full_disk_and_its_death_is_named(host: Inside) -> None:
    """Launched before, ended after; the next launch fails with the cause that tells what to do."""
    launcher = ProcessLauncher(str(host.place), 1)
    launched = await launcher.launch(host, LaunchPlan(("sleep", "600"), port=1), "ours")
    await host.fill()
    try:
        with pytest.raises(HostError) as caught:
            await launcher.launch(host, LaunchPlan(("sleep", "600"), port=1), "next")
        raw = Failure(caught.value.kind, caught.value.what, caught.value.evidence, caught.value.advice)
        named = await named_by_disk(host, raw, str(host.place))
        assert named.cause == "disk-full"
        assert "Free space" in named.advice
        assert any(NO_SPACE in line for line in named.evidence)
    finally:
        proof = await launcher.stop(host, launched)
    assert proof.remains == ()
    assert [note for note in await death_notes(host, launched) if note.startswith("host: ")] == [
        f"host: {NO_SPACE}: {host.place}/runs/ours"
    ]


def test_an_engine_that_died_without_a_word_is_named_by_what_the_host_says_of_its_disk() -> None:
    """Its last words had no room in the log."""
    log = BootLog()
    log.feed(b"[2026-12-02 14:00:00 TP0] Load weight begin.\n", 0.0)
    failure = log.failure(1, (f"host: {NO_SPACE}: /home/ann/.ddconsole/runs/x",))
    assert failure.cause == "disk-full"
    assert "free space" in failure.advice


async def test_a_disk_with_room_names_nothing(host: Inside) -> None:
    """Another cause of a host's error keeps its words, and no probe stays behind."""
    raw = Failure("host", "the host did not answer", ("timed out",), "look at it")
    assert await named_by_disk(host, raw, str(host.place)) == raw
    assert (await host.run(["ls", str(host.place)])).stdout == ""


async def test_the_systems_own_words_are_enough(host: Inside) -> None:
    """The disk may have room again by the time of the look."""
    raw = Failure("host", "it could not be started", (f"mkdir: cannot create directory: {NO_SPACE}",), "")
    named = await named_by_disk(host, raw, str(host.place))
    assert (named.cause, named.evidence) == ("disk-full", raw.evidence)
