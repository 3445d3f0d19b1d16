"""What speed depends on between the cards and the CPU: PCIe, peer-to-peer, NUMA."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ddconsole.core.gpu_list import card_of, parse_list
from ddconsole.engines.sglang.preflight.cards import NAMED
from ddconsole.engines.sglang.preflight.sections import rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.engines.sglang.preflight.cards import Card
    from ddconsole.engines.sglang.preflight.report import Report
    from ddconsole.engines.sglang.preflight.sections import Sections

TOPIC = "speed"
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def check_links(cards: Sequence[Card], found: Sections, report: Report) -> None:
    """PCIe as it is now, and what the driver says of the ways between the cards."""
    _check_pcie(cards, report)
    _check_peers(found.get("peers", []), report)
    _check_topology(found.get("matrix", []), report)
    _tell_instances(found, report)


def _check_pcie(cards: Sequence[Card], report: Report) -> None:
    """Idle cards lower their generation, never their width; so only the width is a finding here."""
    links: dict[str, int] = {}
    narrow, slow = [], False
    for card in cards:
        now, most = card.number("pcie.link.width.current"), card.number("pcie.link.width.max")
        generation, best = card.number("pcie.link.gen.current"), card.number("pcie.link.gen.max")
        if now is None or most is None or generation is None or best is None:
            continue
        words = f"gen {generation:.0f} of {best:.0f}, x{now:.0f} of x{most:.0f}"
        links[words] = links.get(words, 0) + 1
        slow = slow or generation < best
        if now < most:
            narrow.append(f"card {card.index} x{now:.0f} of x{most:.0f}")
    if links:
        text = "; ".join(f"{count} cards {words}" for words, count in links.items())
        idle = " (idle cards lower the generation; a run reads it under load)" if slow else ""
        report.see(TOPIC, "PCIe", text + idle)
    if narrow:
        more = f" and {len(narrow) - NAMED} more" if len(narrow) > NAMED else ""
        report.warn("pcie-narrow", f"PCIe is narrower than it could be: {', '.join(narrow[:NAMED])}{more}",
                    "reseat the card, or look at the slot and the BIOS; every all-reduce goes through it")  # fmt: skip


def parse_matrix(lines: Sequence[str]) -> dict[tuple[int, int], str]:
    """The words between cards of `nvidia-smi topo`, by (row, column), without the diagonal. Never raises."""
    columns: list[int] = []
    found: dict[tuple[int, int], str] = {}
    for line in lines:
        words = _ESCAPES.sub("", line).split()
        if not words:
            if found:
                break
            continue
        if not columns:
            columns = [int(word[3:]) for word in words if re.fullmatch(r"GPU\d{1,3}", word, re.ASCII)]
        elif re.fullmatch(r"GPU\d{1,3}", words[0], re.ASCII):
            row = int(words[0][3:])
            pairs = zip(columns, words[1:], strict=False)
            found |= {(row, column): word for column, word in pairs if column != row}
    return found


def _check_peers(lines: Sequence[str], report: Report) -> None:
    peers = parse_matrix(lines)
    if not peers:
        return
    refused = sorted({word for word in peers.values() if word != "OK"})
    report.facts["peer_to_peer"] = not refused
    pairs = len(peers) // 2
    broken = sum(word != "OK" for word in peers.values()) // 2
    if refused:
        report.see(TOPIC, "peer-to-peer", f"{pairs - broken} of {pairs} pairs ({', '.join(refused)})")
        report.warn("no-peer-to-peer", f"{broken} of {pairs} pairs of cards cannot read each other's memory "
                    f"({', '.join(refused)})", "all-reduce goes through host memory, many times slower; "
                    "look at IOMMU and ACS settings")  # fmt: skip
    else:
        report.see(TOPIC, "peer-to-peer", f"all {pairs} pairs")


def _check_topology(lines: Sequence[str], report: Report) -> None:
    """The kinds of way between cards, and which NUMA node each hangs on."""
    ways: dict[str, int] = {}
    for word in parse_matrix(lines).values():
        ways[word] = ways.get(word, 0) + 1
    if ways:
        report.facts["topology"] = {word: count // 2 for word, count in ways.items()}
        report.see(TOPIC, "ways", ", ".join(f"{count // 2} pairs {word}" for word, count in sorted(ways.items())))
    nodes = _nodes(lines)
    if nodes:
        report.facts["numa_of_cards"] = {str(index): node for index, node in nodes.items()}
        report.see(TOPIC, "NUMA", _node_words(nodes))


def _node_words(nodes: Mapping[int, str]) -> str:
    by_node: dict[str, list[int]] = {}
    for index, node in nodes.items():
        by_node.setdefault(node, []).append(index)
    return ", ".join(f"node {node}: card {' '.join(map(str, cards))}" for node, cards in sorted(by_node.items()))


def _nodes(lines: Sequence[str]) -> dict[int, str]:
    """NUMA node by card, from the column `NUMA Affinity`; columns are apart by tabs."""
    place = None
    found: dict[int, str] = {}
    for line in lines:
        cells = [cell.strip() for cell in _ESCAPES.sub("", line).split("\t")]
        if place is None:
            place = cells.index("NUMA Affinity") if "NUMA Affinity" in cells else None
        elif re.fullmatch(r"GPU\d{1,3}", cells[0], re.ASCII) and len(cells) > place:
            node = cells[place]
            if re.fullmatch(r"[0-9,-]{1,20}", node, re.ASCII):
                found[int(cells[0][3:])] = node
    return found


def check_placement(tree: bool, bound: bool, report: Report) -> None:
    """A tree is built on the CPU for each request: where the ranks run matters when the host has several nodes."""
    nodes = report.facts.get("numa_of_cards") or {}
    if tree and not bound and len(set(nodes.values())) > 1:
        report.note("numa-spread", f"the cards hang on {len(set(nodes.values()))} NUMA nodes and no rank is bound",
                    "the tree is built on the CPU each step; give arg.numa-node, or start under numactl")  # fmt: skip


def _tell_instances(found: Sections, report: Report) -> None:
    """MIG instances, and on which card a process is that is named by one."""
    cards = parse_list(found.get("list", []))
    instances = {
        card.index: [f"{one.profile} {one.uuid}" for one in card.instances] for card in cards if card.instances
    }
    if not instances:
        return
    report.facts["mig_instances"] = {str(index): names for index, names in instances.items()}
    report.see("cards", "instances", ", ".join(f"card {index}: {len(names)}" for index, names in instances.items()))
    for row in rows(found.get("apps", []), "app", 7):
        index = card_of(row[1].strip(), cards)
        if index is not None and row[1].strip().startswith("MIG-"):
            report.see("cards", "in use", f"pid {row[0]} is on an instance of card {index}")
