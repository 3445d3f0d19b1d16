"""`nvidia-smi topo` of the demo host: eight PCIe cards on two NUMA nodes, no NVLink, peer-to-peer between all."""

from __future__ import annotations

from ddconsole.demo.nvidia_smi_cards import CARDS

CARDS_A_NODE = 4
CPUS_A_NODE = 32

_WAYS = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks

"""
_PEERS = """
Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  GNS  = GPU not supported
  TNS  = Topology not supported
  NS   = Not supported
  U    = Unknown

"""


def topo(args: list[str]) -> tuple[int, str]:
    """Exit status and text of `topo -m` and `topo -p2p r|w|n|a|p`."""
    if args in (["-m"], ["--matrix"]):
        return 0, _matrix() + _WAYS
    if len(args) == 2 and args[0] in ("-p2p", "--p2p_status") and args[1] in "rwnap":
        return 0, _peers("NS" if args[1] in "na" else "OK") + _PEERS
    return 1, "Invalid combination of input arguments. Please run 'nvidia-smi topo -h' for help.\n"


def _matrix() -> str:
    names = [f"GPU{index}" for index in range(CARDS)]
    head = "\x1b[4m" + "\t".join(["", *names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]) + "\x1b[0m"
    return "\n".join([head, *map(_matrix_row, range(CARDS)), ""])


def _matrix_row(index: int) -> str:
    node = index // CARDS_A_NODE
    ways = [" X " if other == index else "NODE" if other // CARDS_A_NODE == node else "SYS" for other in range(CARDS)]
    cpus = f"{node * CPUS_A_NODE}-{(node + 1) * CPUS_A_NODE - 1}"
    return "\t".join([f"GPU{index}", *ways, cpus, str(node), "\tN/A"])


def _peers(word: str) -> str:
    head = " " + "".join(f"\tGPU{index}" for index in range(CARDS)) + "\t"
    rows = [
        " " + "\t".join([f"GPU{row}", *("X" if column == row else word for column in range(CARDS))]) + "\t"
        for row in range(CARDS)
    ]
    return "\n".join([head, *rows, ""])
