"""What can be known on the host before paying for a launch: seconds, no GPU work.

Four commands run side by side (`asking`); each topic reads its part of the answers and writes findings, facts for the
record, and lines for people into one report. docs/doctor.md has every finding with its remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.config import Algorithm, effective_config
from ddconsole.core.errors import UsageError
from ddconsole.engines.sglang.command import merged_args
from ddconsole.engines.sglang.preflight.asked import asked_flags
from ddconsole.engines.sglang.preflight.asking import Answers, ask_all
from ddconsole.engines.sglang.preflight.caches import check_jit, check_page_cache
from ddconsole.engines.sglang.preflight.cards import check_apps, check_cards
from ddconsole.engines.sglang.preflight.drafter import check_quantisation, trained_block_size
from ddconsole.engines.sglang.preflight.engine_answers import read_engine, tell_flags
from ddconsole.engines.sglang.preflight.links import check_links, check_placement
from ddconsole.engines.sglang.preflight.machine import check_kernel_log, check_machine
from ddconsole.engines.sglang.preflight.port import check_port
from ddconsole.engines.sglang.preflight.report import Report
from ddconsole.engines.sglang.preflight.room import check_room, memory_of
from ddconsole.engines.sglang.preflight.sections import whole
from ddconsole.engines.sglang.preflight.sm120 import check_driver, check_traps
from ddconsole.engines.sglang.preflight.spelling import check_spelling
from ddconsole.engines.sglang.preflight.weights import check_weights, read_weights
from ddconsole.engines.sglang.rules import check_config

if TYPE_CHECKING:
    from ddconsole.core.config import Config
    from ddconsole.core.ports import Host, Preflight
    from ddconsole.core.profile import Profile

__all__ = ["preflight"]

Args = dict[str, "str | None"]


async def preflight(profile: Profile, host: Host, config: Config, port: int) -> Preflight:
    """All findings, what blocks first, and the facts of the host.

    Raises:
        UnreachableError: the connection is lost.
    """
    report = Report()
    answers = await ask_all(profile, host, port, report)
    args = _arguments(profile, config)
    _check_engine(profile, config, answers, _on_cards(args), report)
    if "port" in answers.host:
        check_port(port, answers.host, report)
    if "model" in answers.host:
        _check_models(profile, config, args, answers, report)
    else:
        report.take(check_config(profile, config, profile.engine.known_block_size))
    if not _on_cards(args):
        report.see("cards", "cards", f"not looked at: the engine computes on {args['device']}")
    else:
        _check_gpus(profile, config, args, answers, report)
    if "system" in answers.host:
        check_machine(answers.host, config.algorithm is Algorithm.TREE, report)
        check_kernel_log(answers.host, report)
        check_room(answers.host, report)
    return report.done()


def _arguments(profile: Profile, config: Config) -> Args:
    """The launch's further arguments; none when they cannot be spelled, which the rules say."""
    try:
        return merged_args(profile, config)
    except UsageError:
        return {}


def _on_cards(args: Args) -> bool:
    """Whether the engine computes on NVIDIA's cards; what only their kernels need is not asked of others."""
    return args.get("device") in (None, "cuda")


def _check_engine(profile: Profile, config: Config, answers: Answers, on_cards: bool, report: Report) -> None:
    effective = effective_config(config, profile.knobs.topk.rule)
    report.see("config", "asked", config.label())
    if config.algorithm is not Algorithm.OFF:
        depth, topk = f"L {config.depth}", "" if effective.topk is None else f" · K {effective.topk}"
        report.see("config", "effective", f"{depth}{topk} · N {effective.verify_width} tokens verified a step")
    if not answers.engine:
        return
    known = read_engine(profile, answers.engine, report, on_cards=on_cards)
    if known is None:
        return
    tell_flags(answers.engine, known, report)
    try:
        check_spelling(profile, config, asked_flags(profile, config), known, report)
    except UsageError:
        return  # what cannot be spelled at all is said by the rules


def _check_models(profile: Profile, config: Config, args: Args, answers: Answers, report: Report) -> None:
    target = read_weights(answers.host["model"])
    drafter = read_weights(answers.host.get("drafter", []))
    check_weights("target", profile.engine.model, target, report)
    if profile.engine.drafter is not None and config.algorithm is not Algorithm.OFF:
        check_weights("drafter", profile.engine.drafter, drafter, report)
    trained = trained_block_size(profile, drafter, report)
    report.take(check_config(profile, config, trained))
    check_quantisation(config, target, args, report)
    check_page_cache(target, answers.host, report)
    if _on_cards(args):
        check_jit(answers.host, report)


def _check_gpus(profile: Profile, config: Config, args: Args, answers: Answers, report: Report) -> None:
    if not answers.cards:
        return
    needed, memory = _cards_needed(profile, args), memory_of(answers.host)
    cards = check_cards(answers.cards, answers.card_fields, needed, report, memory)
    check_apps(answers.cards, cards, report)
    check_driver(cards, answers.host, report)
    check_traps(cards, args, profile.engine.env, config.algorithm is not Algorithm.OFF, report)
    check_links(cards, answers.links | {"apps": answers.cards.get("apps", [])}, report)
    bound = "numa-node" in args or profile.engine.command[0].endswith("numactl")
    check_placement(config.algorithm is Algorithm.TREE, bound, report)


def _cards_needed(profile: Profile, args: Args) -> int:
    """Ranks of the launch; 1 where the profile does not say."""
    tensor = whole(args.get("tp-size") or args.get("tensor-parallel-size")) or 1
    return tensor * (whole(args.get("pp-size") or args.get("pipeline-parallel-size")) or 1)
