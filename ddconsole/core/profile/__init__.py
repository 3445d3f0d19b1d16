"""The profile: one host, one engine, its knobs' spelling, its suites. Models only; the file is read in adapters.

Every scalar of the file arrives here as the text that was typed, so `012`, `1e3`, `on` and `1.10` mean what they say;
these types turn it into numbers and flags, or refuse it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, field_validator, model_validator

from ddconsole.core.config import TopkRule
from ddconsole.core.profile.problems import InvalidProfileError, KeyPath, KeyRuleError, from_pydantic
from ddconsole.core.profile.rules import broken_rules
from ddconsole.core.profile.scalars import Flag, Model, Real, Whole, whole
from ddconsole.core.profile.suites import (
    QUICK_BOX_S,
    CodingPass,
    Limits,
    Passes,
    QualityPass,
    Suite,
    ThroughputPass,
)

__all__ = [
    "QUICK_BOX_S",
    "STALL_DEFAULTS",
    "AlgorithmKnob",
    "CodingPass",
    "EngineSection",
    "Expect",
    "Flag",
    "InvalidProfileError",
    "KeyPath",
    "KeyRuleError",
    "Knob",
    "Knobs",
    "LauncherSection",
    "Limits",
    "Model",
    "Passes",
    "Profile",
    "QualityPass",
    "Real",
    "SecretSource",
    "SharedPrefix",
    "Suite",
    "ThroughputPass",
    "TopkKnob",
    "Whole",
    "WorkloadSection",
    "key_help",
    "known_keys",
    "parse_profile",
]


class SecretSource(Model):
    """Where a secret comes from; exactly one."""

    env: str | None = Field(None, description="name of an environment variable of the console")
    file: str | None = Field(None, description="path of a file that holds it")
    keyring: str | None = Field(None, description="name in the system's keyring")

    @model_validator(mode="after")
    def _exactly_one(self) -> SecretSource:
        if sum(source is not None for source in (self.env, self.file, self.keyring)) != 1:
            raise ValueError("expected exactly one of env, file, keyring")
        return self


class EngineSection(Model):
    """The inference server."""

    kind: Literal["sglang"] = Field("sglang", description="which engine it is")
    command: list[str] = Field(description="how the server is started, before any argument", min_length=1)
    port: Annotated[Whole, Field(ge=1, le=65535)] | Literal["auto"] = Field(
        30000,
        description="where it listens on the host's loopback; auto takes a free port for each launch",
        union_mode="left_to_right",
    )
    model: str = Field(description="target model: path or name")
    drafter: str | None = Field(None, description="DFlash drafter: path or name; needed by chain and tree")
    trained_block_size: Whole | Literal["auto"] = Field(
        "auto",
        description="block size that the drafter was trained at; auto reads its config.json",
        union_mode="left_to_right",
    )
    env: dict[str, str] = Field(default_factory=dict, description="environment of the server")
    secrets: dict[str, SecretSource] = Field(default_factory=dict, description="environment that is secret")
    args: dict[str, str | None] = Field(
        default_factory=dict, description="further arguments: long flag without dashes to value; true for a bare flag"
    )

    @property
    def known_block_size(self) -> int | None:
        """What the profile says of the drafter's training; None leaves it to the drafter's own config.json."""
        return self.trained_block_size if isinstance(self.trained_block_size, int) else None


class LauncherSection(Model):
    """How the engine is started on the host."""

    kind: Literal["process", "systemd"] = Field("process", description="systemd gives each engine a unit of its own")
    scope: Literal["user", "system"] = Field("user", description="whose systemd manager has the unit")
    unit: str | None = Field(None, description="an engine that is already a service: its unit, taken over for runs")
    take_over: Literal["ask", "yes", "no"] = Field("ask", description="consent to stop that service and put it back")
    log: Literal["file", "journal"] = Field("file", description="where a unit's output goes; file is in state_dir")
    state_dir: str = Field("~/.ddconsole", description="folder on the host for logs and pid files; ~ is its home")
    stop_grace_s: Real = Field(30.0, gt=0, description="seconds between TERM and KILL")


class Knob(Model):
    """How one knob is spelled: a flag, an environment variable, a JSON field of a flag, or tied to another knob."""

    flag: str | None = Field(None, description="long flag, with its dashes")
    env: str | None = Field(None, description="environment variable")
    json_field: str | None = Field(None, description="FLAG:FIELD, a field of a flag that takes JSON")
    tied: str | None = Field(None, description="follows another knob, `block_size - 1`; cannot be set alone")
    default: Whole | None = None
    min: Whole = 1
    max: Whole = 1_000_000

    @model_validator(mode="after")
    def _spelled(self) -> Knob:
        spelled = sum(way is not None for way in (self.flag, self.env, self.json_field, self.tied))
        if spelled > 1:
            raise ValueError("expected one of flag, env, json_field, tied")
        if self.default is not None and not self.min <= self.default <= self.max:
            raise KeyRuleError("default", message=f"expected {self.min} to {self.max}; read {self.default}")
        return self


class TopkKnob(Knob):
    """topk may be derived by the engine and only capped."""

    cap_env: str | None = Field(None, description="environment variable that caps the derived topk")
    derived: TopkRule | None = Field(None, description="the engine's rule for K; as-asked when absent")

    @property
    def rule(self) -> TopkRule:
        """How the engine comes to its K."""
        return self.derived or TopkRule.AS_ASKED


class AlgorithmKnob(Model):
    """The flag that chooses the algorithm, and its value for each; null leaves the flag out."""

    flag: str = "--speculative-algorithm"
    off: str | None = None
    chain: str = "DFLASH"
    tree: str = "DDTREE"
    default: Literal["off", "chain", "tree"] = "tree"


class Knobs(Model):
    """The four knobs and the algorithm. The defaults are SGLang's with pull request 29907."""

    algorithm: AlgorithmKnob = AlgorithmKnob()
    block_size: Knob = Knob(flag="--speculative-num-draft-tokens", default=8, min=2, max=64)
    budget: Knob = Knob(flag="--speculative-ddtree-budget", default=12, max=4096)
    topk: TopkKnob = TopkKnob(cap_env="SGLANG_DDTREE_MAX_TOPK", derived=TopkRule.PR29907, default=6, max=4096)
    window: Knob = Knob(flag="--speculative-draft-window-size", default=2048)


class SharedPrefix(Model):
    """Prompts in groups that begin alike, as agents and chats do; made up from the seed, and sized in words."""

    groups: Whole = Field(4, ge=1, description="how many prefixes there are")
    questions: Whole = Field(4, ge=1, description="prompts behind each prefix")
    prefix_words: Whole = Field(1024, ge=1, description="words that the prompts of a group share")
    question_words: Whole = Field(64, ge=1, description="words of each prompt's own")
    seed: Whole = Field(1, ge=0)


class WorkloadSection(Model):
    """What the numbers hold for."""

    temperature: Real = Field(0.0, ge=0, le=2)
    thinking: Flag = False
    prompts: str = Field(
        "code", description="a shipped prompt set (code, mixed, long, agentic), shared-prefix, or a JSONL file"
    )
    shared_prefix: SharedPrefix = Field(SharedPrefix(), description="what `prompts: shared-prefix` is made of")


class Expect(Model):
    """First estimates, until this host has a history."""

    boot_s: Real = Field(480.0, gt=0)
    pass_s: Real = Field(60.0, gt=0)


STALL_DEFAULTS: dict[str, float] = {
    "launch": 60.0,
    "init": 300.0,
    "load_target": 900.0,
    "load_draft": 300.0,
    "kv": 300.0,
    "graphs": 900.0,
    "warmup": 900.0,
    "ready": 900.0,
    "pass": 600.0,
    "boot": 14_400.0,
}
"""Seconds without any sign of life before a phase counts as hung; `boot` limits a whole boot, silent or not."""


class Profile(Model):
    """A whole profile. `name` is the file's name, not a key of it."""

    schema_: Annotated[Literal[1], BeforeValidator(whole)] = Field(1, alias="schema")
    host: str = Field(min_length=1, description="an ssh alias, local, or demo")
    transport: Literal["asyncssh", "openssh"] = "asyncssh"
    autostart: Flag = False
    engine: EngineSection
    launcher: LauncherSection = LauncherSection()
    knobs: Knobs = Knobs()
    workload: WorkloadSection = WorkloadSection()
    passes: Passes = Passes()
    limits: Limits = Limits()
    stalls: dict[str, Real] = Field(
        default_factory=dict,
        validate_default=True,
        description="seconds of silence after which a phase counts as hung; boot: seconds that a whole boot may take",
    )
    expect: Expect = Expect()
    queue: list[str] = Field(default_factory=list, description="the starting queue, put in once")

    @field_validator("stalls", mode="after")
    @classmethod
    def _with_defaults(cls, given: dict[str, float]) -> dict[str, float]:
        """Every limit has a value, so that `profiles show --json` tells all of them."""
        return STALL_DEFAULTS | given

    @model_validator(mode="after")
    def _stall_names(self) -> Profile:
        for name in self.stalls:
            if name not in STALL_DEFAULTS:
                raise KeyRuleError("stalls", name, message=f"unknown phase; known: {', '.join(STALL_DEFAULTS)}")
        return self

    def stall_s(self, phase: str) -> float:
        """Seconds of silence that `phase` may have."""
        return self.stalls.get(phase, 600.0)

    def limits_of(self, suite: str) -> Limits:
        """What a result of `suite` has to keep: the suite's own limits over the profile's, figure by figure."""
        chosen: Suite = getattr(self.passes, suite)
        if chosen.limits is None:
            return self.limits
        own = {name: getattr(chosen.limits, name) for name in chosen.limits.model_fields_set}
        require = self.limits.require | chosen.limits.require
        return self.limits.model_copy(update=own | {"require": require})

    @property
    def boot_limit_s(self) -> float:
        """Seconds that a boot may take from launch to proof, whatever it says meanwhile."""
        return self.stalls["boot"]


def parse_profile(data: dict[str, Any]) -> Profile:
    """The profile that a file's data mean; scalars are text as it was typed.

    Raises:
        InvalidProfileError: with everything that is wrong, by key.
    """
    try:
        profile = Profile.model_validate(data)
    except ValidationError as error:
        raise InvalidProfileError(from_pydantic(error.errors(include_url=False), data)) from None
    problems = tuple(broken_rules(profile))
    if problems:
        raise InvalidProfileError(problems)
    return profile


def known_keys(path: KeyPath) -> tuple[str, ...]:
    """The keys that the section at `path` may have; empty where any name is allowed."""
    model: Any = Profile
    for part in path:
        field = _fields(model).get(str(part)) if _fields(model) else None
        model = _section(field.annotation) if field else _section(model)
    return tuple(_fields(model))


def key_help(path: KeyPath) -> str:
    """What the key at `path` is for, in a few words; empty where nothing is written down."""
    model: Any = Profile
    field: Any = None
    for part in path:
        field = _fields(model).get(str(part))
        model = _section(field.annotation) if field else _section(model)
    return (field.description or "") if field else ""


def _fields(model: Any) -> dict[str, Any]:
    """A section's fields by the name that the file uses."""
    fields = getattr(model, "model_fields", {})
    return {field.alias or name: field for name, field in fields.items()}


def _section(annotation: Any) -> Any:
    """The model inside `Model | None`, `dict[str, Model]` and the like; None where there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _section(part))), None)
