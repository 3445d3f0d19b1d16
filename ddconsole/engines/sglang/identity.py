"""Contract 2: the number on the screen belongs to the config beside it. What is proved, what is not, what differs.

Three witnesses: what the engine says of its arguments (/server_info), what its log says it runs, and the environment
of its process. Each knob is compared with what was asked; one that differs is a failure with a name.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ddconsole.core.config import Algorithm, TopkRule, effective_config
from ddconsole.core.errors import Failure
from ddconsole.core.ports import Identity
from ddconsole.core.profile import TopkKnob
from ddconsole.engines.sglang.command import DRAFTER_FLAG, KNOBS, algorithm_value, arg_name, launch_plan, merged_args
from ddconsole.engines.sglang.verify_width import check_verify_width

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.config import Config
    from ddconsole.core.ports import Host, Launched
    from ddconsole.core.profile import Knob, Profile
    from ddconsole.core.progress import BootFacts

TOKEN_VARIABLE: Final = "DDCONSOLE_ATTEMPT"
"""The variable that marks every process of a launch."""

_ENVIRON = r"""tr '\0' '\n' <"/proc/$1/environ" 2>/dev/null | grep -E "^($2)="; :"""
"""Prints only the variables named by $2: secrets in the environment never leave the host."""

WORDS: Final = {"block_size": "block size", "budget": "budget", "topk": "topk", "window": "window"}


@dataclass(slots=True)
class Findings:
    """What the witnesses said. A witness that is silent proves nothing and accuses nobody."""

    proved: list[str] = field(default_factory=list)
    unproved: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)

    def compare(self, what: str, asked: Any, told: Mapping[str, Any]) -> None:
        """`told` maps each witness to its value, None for silence."""
        heard = {witness: value for witness, value in told.items() if value is not None}
        wrong = [f"{what}: asked {asked}, {witness} says {value}" for witness, value in heard.items()
                 if not same(asked, value)]  # fmt: skip
        if wrong:
            self.differs += wrong
        elif heard:
            self.proved.append(f"{what} {asked} ({', '.join(heard)})")
        else:
            self.unproved.append(f"{what} {asked} (asked, not proved)")

    def doubt(self, claim: str) -> None:
        """What stood as proved is open after all: a better witness does not bear it out."""
        for text in [text for text in self.proved if text.startswith(f"{claim} (")]:
            self.proved.remove(text)
            self.unproved.append(text)


def same(asked: Any, told: Any) -> bool:
    """Equal as words, as numbers (`0.90` and 0.9) or as flags (`true` and True)."""
    left, right = str(asked).strip().lower(), str(told).strip().lower()
    if left == right:
        return True
    try:
        return float(left) == float(right)
    except ValueError:
        return False


async def read_environment(host: Host, pid: int, names: tuple[str, ...]) -> dict[str, str]:
    """The variables `names` of a process on the host; those that are not there are left out."""
    wanted = [name for name in names if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)]
    done = await host.run(["sh", "-c", _ENVIRON, "sh", str(pid), "|".join(wanted)], timeout=15)
    pairs = (line.partition("=") for line in done.stdout.splitlines())
    return {name: value for name, _, value in pairs if name in wanted}


def variables(profile: Profile, config: Config) -> dict[str, str]:
    """Environment variables that spell knobs of `config`: variable to knob."""
    found = {}
    for name in KNOBS:
        knob = getattr(profile.knobs, name)
        variable = knob.env or (knob.cap_env if isinstance(knob, TopkKnob) and knob.flag is None else None)
        if variable is not None and getattr(config, name) is not None:
            found[variable] = name
    return found


def told_by_info(info: Mapping[str, Any], knob: Knob) -> Any:
    """A knob's value as /server_info has it, whether a flag of its own or a field of a JSON flag."""
    if knob.flag is not None:
        return info.get(field_name(knob.flag))
    if knob.json_field is not None:
        flag, _, key = knob.json_field.partition(":")
        holder = info.get(field_name(flag))
        return holder.get(key) if isinstance(holder, dict) else None
    return None


def field_name(flag: str) -> str:
    """`--speculative-num-draft-tokens` is `speculative_num_draft_tokens` among the server's arguments."""
    return arg_name(flag).replace("-", "_")


@dataclass(frozen=True, slots=True)
class Witnesses:
    """What is known of a running engine. `info` is empty and `why_not` says why when it could not be read."""

    info: Mapping[str, Any]
    facts: BootFacts
    environment: Mapping[str, str]
    why_not: str = ""


def judge(profile: Profile, config: Config, launched: Launched, seen: Witnesses) -> Identity | Failure:
    """Compare all witnesses with what was asked."""
    width = check_verify_width(config, seen.facts)
    found = Findings()
    if isinstance(width, Failure):
        return width
    _compare_knobs(found, profile, config, seen)
    _compare_model(found, profile, config, seen.info)
    _compare_args(found, profile, config, seen.info)
    _compare_process(found, launched, seen)
    (found.proved if width.proved else found.unproved).append(width.text)
    if width.contested:
        found.doubt(f"{WORDS['budget']} {config.budget}")
    if seen.why_not:
        found.unproved.append(f"server_info ({seen.why_not})")
    if found.differs:
        return Failure(
            "identity-mismatch", f"the engine that answers is not the one that was asked for: {found.differs[0]}",
            tuple(found.differs),
            "a number from it would stand beside the wrong config; see whether an old engine answers, or this fork "
            "ignores the knob", "warmup",
        )  # fmt: skip
    return Identity(tuple(found.proved), tuple(found.unproved), _version(seen), dict(seen.info))


def _version(seen: Witnesses) -> str | None:
    version = seen.info.get("version")
    return str(version) if version else seen.facts.version


def _compare_knobs(found: Findings, profile: Profile, config: Config, seen: Witnesses) -> None:
    by_variable = {name: variable for variable, name in variables(profile, config).items()}
    for name in KNOBS:
        asked = getattr(config, name)
        if asked is None:
            continue
        told: dict[str, Any] = {"server_info": told_by_info(seen.info, getattr(profile.knobs, name))}
        if name != "topk":
            told["log"] = getattr(seen.facts, name)
        if name in by_variable:
            told["environment"] = seen.environment.get(by_variable[name])
        what = "topk cap" if name == "topk" and profile.knobs.topk.rule is TopkRule.PR29907 else WORDS[name]
        found.compare(what, asked, told)
    if config.algorithm is Algorithm.TREE and profile.knobs.topk.rule is TopkRule.PR29907:
        effective = effective_config(config, TopkRule.PR29907)
        found.unproved.append(f"topk {effective.topk} (derived by the engine, not reported)")


def _compare_model(found: Findings, profile: Profile, config: Config, info: Mapping[str, Any]) -> None:
    """Algorithm, target and drafter. With `off` the engine must name no algorithm."""
    if not info:
        found.unproved.append("algorithm and model (asked, not proved)")
        return
    asked = algorithm_value(profile, config.algorithm)
    told = info.get(field_name(profile.knobs.algorithm.flag))
    if asked is None and told is None:
        found.proved.append("no drafting algorithm (server_info)")
    else:
        found.compare("algorithm", asked, {"server_info": "none" if told is None else told})
    pairs = [("model", profile.engine.model, "model_path")]
    if config.algorithm is not Algorithm.OFF and profile.engine.drafter is not None:
        pairs.append(("drafter", profile.engine.drafter, field_name(DRAFTER_FLAG)))
    for what, path, key in pairs:
        told = info.get(key)
        found.compare(what, path, {"server_info": path if same_model(path, told) else told})


def same_model(asked: str, told: Any) -> bool:
    """The same path, or a resolved one that ends in the same name or holds it as a cache folder does."""
    if not isinstance(told, str):
        return False
    name = asked.rstrip("/").rpartition("/")[2]
    return told == asked or name in re.split(r"/|--", told)


def _compare_args(found: Findings, profile: Profile, config: Config, info: Mapping[str, Any]) -> None:
    """Further arguments. Those of the experiment must be as asked; of the profile's, an engine may correct some."""
    own = {arg_name(name) for name, _ in config.args}
    for name, asked in merged_args(profile, config).items():
        told = info.get(name.replace("-", "_"))
        if told is None or asked is None or asked == "false":
            continue
        if name in own:
            found.compare(name, asked, {"server_info": told})
        elif not same(asked, told):
            found.unproved.append(f"{name}: asked {asked}, runs {told} (server_info)")
    _compare_command(found, profile, config, info.get("launch_command"))


def _compare_command(found: Findings, profile: Profile, config: Config, told: Any) -> None:
    """The command as the engine was typed, where it tells it: each word that we gave has to be in it."""
    if not told:
        return
    try:
        words = [str(word) for word in told] if isinstance(told, list) else shlex.split(str(told))
    except ValueError:
        words = str(told).split()
    asked = launch_plan(profile, config, 0, {}).argv[len(profile.engine.command) : -2]
    missing = [word for word in asked if word not in words]
    if missing:
        found.unproved.append(f"command line: {' '.join(missing[:6])} not in it (server_info)")
    else:
        found.proved.append("command line (server_info)")


def _compare_process(found: Findings, launched: Launched, seen: Witnesses) -> None:
    """The token in the environment of the process that we started; the port it should serve."""
    token = seen.environment.get(TOKEN_VARIABLE)
    if token is None:
        found.unproved.append(f"attempt token (environment of pid {launched.pid} not readable)")
    elif token == launched.token:
        found.proved.append(f"process {launched.pid} is this attempt's (environment)")
    else:
        found.differs.append(f"process {launched.pid} belongs to another attempt: its {TOKEN_VARIABLE} differs")
    port = seen.info.get("port")
    if port is not None:
        found.compare("port", launched.port, {"server_info": port})
