"""The list of cards with their MIG instances, refused fields, and links under load."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ddconsole.core.gpu import GpuSample
from ddconsole.core.gpu_list import Instance, ListedCard, bad_field, card_of, parse_list
from ddconsole.core.gpu_load import LinksUnderLoad, slow_links

LISTED = """GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
  MIG 3g.40gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
  MIG 1g.10gb+me  Device  1: (UUID: MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/1/0)
GPU 1: NVIDIA RTX PRO 6000 Blackwell (Max-Q) (UUID: GPU-00000001)
Unable to determine the device handle for GPU2: 0000:C1:00.0: Unknown Error"""


def test_cards_and_their_instances() -> None:
    """Both spellings of an instance's UUID; other lines are left out."""
    first, second = parse_list(LISTED.splitlines())
    assert (first.index, second.index, second.instances) == (0, 1, ())
    assert second.name == "NVIDIA RTX PRO 6000 Blackwell (Max-Q)"
    assert first.instances[0] == Instance("3g.40gb", "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f")
    cards = (first, second)
    assert card_of("GPU-00000001", cards) == 1
    assert [card_of(one.uuid, cards) for one in first.instances] == [0, 0]
    assert card_of(f"MIG-{first.uuid}/7/0", cards) == 0
    assert card_of("MIG-unknown", cards) is None


def test_an_instance_before_any_card_belongs_to_none() -> None:
    """Cut output."""
    assert parse_list(LISTED.splitlines()[1:2]) == ()


@given(st.lists(st.text(max_size=80), max_size=10), st.text(max_size=40))
def test_any_lines_are_read_without_an_error(lines: list[str], uuid: str) -> None:
    """Whatever stands there."""
    cards = parse_list(lines)
    assert all(isinstance(card, ListedCard) for card in cards)
    card_of(uuid, cards)
    bad_field(uuid)


def test_the_field_that_a_driver_refuses() -> None:
    """In nvidia-smi's own words, and in no others."""
    assert bad_field('Field "compute_cap" is not a valid field to query.') == "compute_cap"
    assert bad_field("No devices were found") is None


def test_a_link_counts_only_while_its_card_works() -> None:
    """The best of the busy moments; an idle card's generation says nothing."""
    links = LinksUnderLoad()
    busy = GpuSample(0, utilization_pct=95.0, pcie_gen=4, pcie_width=16)
    links.take([busy, GpuSample(1, utilization_pct=2.0, pcie_gen=1, pcie_width=16)])
    links.take([GpuSample(0, utilization_pct=90.0, pcie_gen=3, pcie_width=16), GpuSample(2, pcie_gen=5, pcie_width=16)])
    assert links.to_json() == [{"index": 0, "gen": 4, "width": 16}]
    assert slow_links(links.to_json(), [{"index": 0, "pcie.link.gen.max": 5.0}]) == ["card 0 gen 4 of 5"]
    assert slow_links(links.to_json(), [{"index": 0, "pcie.link.gen.max": 4.0}]) == []
    assert slow_links(links.to_json(), [{"index": 0, "pcie.link.gen.max": None}]) == []
    links.clear()
    assert links.to_json() == []


def test_the_clock_counts_only_while_its_card_works() -> None:
    """From the lowest to the highest of the busy moments; a card that tells no PCIe link has a clock all the same."""
    seen = LinksUnderLoad()
    busy = GpuSample(0, utilization_pct=95.0, sm_clock_mhz=2317)
    seen.take([busy, GpuSample(1, utilization_pct=2.0, sm_clock_mhz=210)])
    seen.take([GpuSample(0, utilization_pct=80.0, sm_clock_mhz=1980), GpuSample(2, utilization_pct=99.0)])
    assert seen.clocks_json() == [{"index": 0, "low_mhz": 1980, "high_mhz": 2317}]
    assert seen.to_json() == []
    seen.clear()
    assert seen.clocks_json() == []
