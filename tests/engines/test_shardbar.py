"""Progress bars in every number form that was seen, and our own estimate."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddconsole.engines.sglang.shardbar import Pace, find_bar, item_seconds, seconds

BARS = [
    # text, kind, done, total, elapsed, seconds an item
    ("Multi-thread loading shards:   0% Completed | 0/163 [00:00<?, ?it/s]", "weights", 0, 163, 0, None),
    ("Multi-thread loading shards:   1% Completed | 1/163 [01:22<3:42:45, 82.50s/it]", "weights", 1, 163, 82, 82.5),
    ("Multi-thread loading shards: 100% Completed | 163/163 [01:22<00:00,  1.98it/s]", "weights",
     163, 163, 82, 1 / 1.98),
    ("Multi-thread loading shards:   8% Completed | 5/62 [1:06:40<12:40:00, 800.00s/it]", "weights",
     5, 62, 4000, 800.0),
    ("Multi-thread loading shards: 100% Completed | 1/1 [00:00<00:00, 10000000.00it/s]", "weights", 1, 1, 0, 1e-7),
    ("Multi-thread loading shards:   0% Completed | 3/? [00:01<00:00,  2.50it/s]", "weights", 3, None, 1, 0.4),
    ("Multi-thread loading shards:   0% Completed | 0/0 [00:00<?, ?it/s]", "weights", 0, 0, 0, None),
    ("Multi-thread loading shards:   1% Completed | 2/200 [30:00:00<2970:00:00, 54000.00s/it]",
     "weights", 2, 200, 108000, 54000.0),
    ("Loading pt checkpoint shards: 100% Completed | 1/1 [00:00<00:00,  6.05it/s]", "weights", 1, 1, 0, 1 / 6.05),
    ("Multi-thread loading pt checkpoint shards: 100% Completed | 1/1 [00:00<00:00,  6.05it/s]",
     "weights", 1, 1, 0, 1 / 6.05),
    ("Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:00<00:00,  3.33it/s]", "weights",
     1, 4, 0, 1 / 3.33),
    ("Loading checkpoint shards:  26%|██▋       | 5/19 [01:23<03:53, 16.73s/it]", "weights", 5, 19, 83, 16.73),
    (" 50%|###########           | 50/100 [00:05<00:05, 10.00it/s]", "other", 50, 100, 5, 0.1),
    ("Multi-thread loading shards: 3it [00:01,  2.50it/s]", "weights", 3, None, 1, 0.4),
    ("Capturing batches (bs=16 avail_mem=13.56 GB):   0%|          | 0/6 [00:00<?, ?it/s]", "graphs", 0, 6, 0, None),
    ("Capturing batches (bs=1 avail_mem=10.17 GB): 100%|██████████| 6/6 [00:59<00:00,  9.85s/it]", "graphs",
     6, 6, 59, 9.85),
    ("model-00001-of-00004.safetensors:  23%|█████▌       | 1.15G/4.98G [00:12<00:39, 95.8MB/s]", "download",
     1_150_000_000, 4_980_000_000, 12, None),
    ("  0%|          | 1.48k/29.9G [00:00<908:59:43, 9.82kB/s, file=LICENSE, n=2/17]", "download",
     1_480, 29_900_000_000, 0, None),
    ("config.json: 100%|██████████| 512/512 [00:00<00:00, 1.2MB/s]", "download", 512, 512, 0, None),
    ("Fetching 64 files:   3%|▎         | 2/64 [01:40<51:40, 50.00s/it]", "download", 2, 64, 100, 50.0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "done", "total", "elapsed", "each"), BARS)
def test_every_number_form(
    text: str, kind: str, done: int, total: int | None, elapsed: int, each: float | None
) -> None:
    """n, total and elapsed; s/it and it/s not swapped; byte counts are never shards."""
    bar = find_bar(text)
    assert bar is not None
    assert (bar.kind, bar.done, bar.total, bar.elapsed_s) == (kind, done, total, elapsed)
    assert bar.item_s == (None if each is None else pytest.approx(each))
    assert bar.before == bar.after == ""


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("Capturing batches (avail_mem=12.55 GB):   0%|          | 0/23 [00:00<?, ?it/s]2025-03-27 21:33 - x",
         "", "2025-03-27 21:33 - x"),
        ('model.safetensors:  11% 100M/892M [00:03<00:26, 30.3MB/s] INFO:     192.0.2.7:0 - "GET / HTTP/1.1" 200 OK',
         "", 'INFO:     192.0.2.7:0 - "GET / HTTP/1.1" 200 OK'),
        ("a word Multi-thread loading shards:   1% Completed | 1/4 [00:03<00:09,  3.01s/it]", "a word", ""),
    ],
)  # fmt: skip
def test_text_glued_to_a_bar_is_split_off(text: str, before: str, after: str) -> None:
    """An error may hide there."""
    bar = find_bar(text)
    assert bar is not None
    assert (bar.before, bar.after) == (before, after)


@pytest.mark.parametrize("text", ["", "100%", "[2026-11-18 14:02:01] 50% of it", "x 3% | 1/2", "Comp", "% [ it ["])
def test_what_is_no_bar_is_plain_log(text: str) -> None:
    """No exception, no invented progress."""
    assert find_bar(text) is None


@settings(deadline=None)
@given(st.text(alphabet="Loading shards:%|0123456789/[]<?,.it/sMG Cmpletd", max_size=120))
def test_no_text_raises(text: str) -> None:
    """Whatever looks a little like a bar."""
    find_bar(text)
    seconds(text)
    item_seconds(text)


def test_no_estimate_before_three_shards() -> None:
    """The first shard's own ETA jumps by hours."""
    pace = Pace()
    etas = []
    for done in range(6):
        pace.see(done, 100.0 + 5.0 * done)
        etas.append(pace.eta_s(64))
    assert etas[:3] == [None, None, None]
    assert etas[3] == pytest.approx(61 * 5.0)
    assert etas[5] == pytest.approx(59 * 5.0)


def test_a_bar_without_total_has_no_estimate() -> None:
    """No division by what is not known."""
    pace = Pace()
    for done in range(8):
        pace.see(done, float(done))
    assert pace.eta_s(None) is None
    assert pace.eta_s(7) == 0.0


def test_a_burst_of_history_is_one_observation() -> None:
    """After a reconnect forty states arrive at once: no speed follows from that."""
    pace = Pace()
    for done in range(40):
        pace.see(done, 10.0)
    assert pace.eta_s(64) is None
    pace.see(40, 16.0)
    pace.see(41, 22.0)
    assert pace.eta_s(64) == pytest.approx(23 * 6.0)


def test_the_estimate_follows_a_change_of_speed_calmly() -> None:
    """From the page cache first, then from disk: the window forgets the fast start."""
    pace = Pace()
    at = 0.0
    for done in range(64):
        at += 0.1 if done < 20 else 6.0
        pace.see(done, at)
    assert pace.eta_s(100) == pytest.approx(37 * 6.0)


def test_a_new_bar_begins_anew() -> None:
    """The draft's graphs after the target's."""
    pace = Pace()
    for done in range(6):
        pace.see(done, float(done))
    pace.see(0, 7.0)
    assert pace.eta_s(5) is None
