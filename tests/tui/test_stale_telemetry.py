"""A lost line is one badge; what was seen last stays in sight, marked as old and with its age."""

from __future__ import annotations

from datetime import timedelta

from tui.desk import NOW, Desk, console, screen_text, until
from tui.story import tree

from ddconsole.core import events
from ddconsole.tui.widgets.gpu_panel import OLD_S, GpuPanel

CARD = {"index": 0, "name": "card", "uuid": "GPU-1", "utilization_pct": 92.0, "memory_used_mib": 100,
        "memory_total_mib": 200, "temperature_c": 71.0, "power_w": 412.0, "power_limit_w": 600.0}  # fmt: skip


async def test_samples_that_stop_are_marked_with_their_age_while_the_keys_work() -> None:
    """After five seconds without a sample; a new one takes the mark away."""
    desk = Desk()
    desk.add(tree(8, 12))
    app = console(desk)
    now = [NOW]
    app.bridge._now = lambda: now[0]
    async with app.run_test(size=(120, 40)) as pilot:
        desk.tell(events.Connection("connected", rtt_ms=12.0))
        desk.tell(events.GpuSampled([CARD]))
        panel = app.screen.query_one(GpuPanel)
        await until(pilot, lambda: "92%" in screen_text(app).replace(" %", "%"), "the card")
        assert not panel.has_class("-stale")
        now[0] += timedelta(seconds=OLD_S + 60)
        desk.tell(events.Connection("lost", detail="no answer"))
        await until(pilot, lambda: "ago" in screen_text(app), "the age")
        assert panel.has_class("-stale")
        assert "92%" in screen_text(app).replace(" %", "%"), "what was seen last stays in sight"
        assert "no answer" in screen_text(app) or "lost" in screen_text(app)
        await pilot.press("a")
        await until(pilot, lambda: app.screen is not app.screen_stack[0], "a key")
        await pilot.press("escape")
        desk._feed.publish(events.Event(0, now[0], events.Connection("connected", rtt_ms=12.0)))
        desk._feed.publish(events.Event(0, now[0], events.GpuSampled([CARD])))
        await until(pilot, lambda: not panel.has_class("-stale"), "a fresh sample")
