"""The profile: one host, one engine, its knobs' spelling, its suites. Models only; the file is read in adapters.

Every scalar of the file arrives here as the text that was typed, so `012`, `1e3`, `on` and `1.10` mean what they say;
these types turn it into numbers and flags, or refuse it.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from ddconsole.core.config import TopkRule
from ddconsole.core.profile.problems import InvalidProfileError, KeyPath, KeyRuleError, from_pydantic
from ddconsole.core.profile.rules import broken_rules

TRUE_WORDS = frozenset({"true", "yes", "on"})
FALSE_WORDS = frozenset({"false", "no", "off"})


def _whole(value: Any) -> Any:
    """A whole number as typed: `12`, `012` and `1e3` are decimal."""
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            raise ValueError("expected a whole number") from None
        if not math.isfinite(number) or number != int(number):
            raise ValueError("expected a whole number")
        return int(number)
    if isinstance(value, bool):
        raise ValueError("expected a whole number")
    return value


def _real(value: Any) -> Any:
    """A finite number as typed."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise ValueError("expected a number") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("expected a finite number")
    return value


def _flag(value: Any) -> Any:
    """true or false, in YAML's words."""
    if isinstance(value, str):
        word = value.lower()
        if word in TRUE_WORDS | FALSE_WORDS:
            return word in TRUE_WORDS
        raise ValueError("expected true or false")
    return value


Whole = Annotated[int, BeforeValidator(_whole)]
Real = Annotated[float, BeforeValidator(_real)]
Flag = Annotated[bool, BeforeValidator(_flag)]


class Model(BaseModel):
    """Strict about keys; frozen, so that a profile never changes under a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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


class CodingPass(Model):
    """Tasks with hidden tests, graded in the sandbox on the console's machine."""

    suite: str = Field("small", description="small, humaneval (an extra), or a JSONL file of tasks")
    max_tokens: Whole = Field(1024, ge=1)
    samples: Whole = Field(1, ge=1, le=1000, description="answers to each task; pass@1 is their unbiased mean")
    grade_wall_s: Real = Field(10.0, gt=0, description="seconds that the tests of one answer may take")
    grade_memory_mb: Whole = Field(512, ge=64, description="memory of each process that grades")
    allow_no_isolation: Flag = False


class ThroughputPass(Model):
    """Requests at concurrency levels (closed loop), and then at rates (open loop)."""

    concurrency: list[Annotated[Whole, Field(ge=1)]] = Field(
        default_factory=lambda: [1], description="requests in flight, one level each; [] for rates alone"
    )
    rate: list[Annotated[Real, Field(gt=0)]] = Field(
        default_factory=list,
        description="requests a second that come whether or not the engine keeps up, one level each",
    )
    arrivals: Literal["poisson", "constant"] = Field("poisson", description="how a rate's requests are spaced")
    max_in_flight: Whole = Field(64, ge=1, description="at a rate: what is due beyond this waits for a free place")
    requests: Whole = Field(8, ge=1, description="requests at each level")
    max_tokens: Whole = Field(256, ge=2)
    exact_tokens: Flag = Field(
        False, description="every answer has exactly max_tokens tokens (ignore_eos); another length is a failed request"
    )
    warmup: Whole = Field(1, ge=0, description="requests of each stream before the first level, not counted")
    seed: Whole = Field(1, ge=0, description="of the arrivals")

    @model_validator(mode="after")
    def _some_level(self) -> ThroughputPass:
        if not self.concurrency and not self.rate:
            raise KeyRuleError("concurrency", message="expected a level here or under rate")
        return self


class QualityPass(Model):
    """The cheap alarms that speed hides."""

    min_tau: Real = Field(1.2, description="a tau below this is a warning")
    prompts: Whole = Field(8, ge=2, description="prompts that are asked, each twice")


class Suite(Model):
    """Which passes a suite has, and how big they are. A pass that is named without a value has its defaults."""

    coding: CodingPass | None = None
    throughput: ThroughputPass | None = None
    quality: QualityPass | None = None
    time_box_s: Real | None = Field(None, gt=0, description="seconds after which no further request is asked")

    @field_validator("coding", "throughput", "quality", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {} if value is None else value

    def names(self) -> tuple[str, ...]:
        """The passes it has, in the order they are run."""
        return tuple(name for name in ("coding", "throughput", "quality") if getattr(self, name) is not None)


QUICK_BOX_S = 180.0
"""The time box of the quick suite, boot aside, where the profile gives none."""


class Passes(Model):
    """quick for every config, confirm for the few best and their control."""

    quick: Suite = Suite(coding=CodingPass(), throughput=ThroughputPass())
    confirm: Suite = Suite(coding=CodingPass(), throughput=ThroughputPass(requests=32), quality=QualityPass())

    def box_s(self, suite: str) -> float | None:
        """The time box of a suite, seconds: quick has one of three minutes unless the profile says otherwise."""
        chosen: Suite = getattr(self, suite)
        return chosen.time_box_s or (QUICK_BOX_S if suite == "quick" else None)


class Limits(Model):
    """What a good result has to keep."""

    ttft_ms: Real | None = None
    tpot_ms: Real | None = None
    require: dict[str, str] = Field(default_factory=dict, description="such as coding: 5/5")


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
    "pass": 600.0,
}
"""Seconds without any sign of life before a phase counts as hung."""


class Profile(Model):
    """A whole profile. `name` is the file's name, not a key of it."""

    schema_: Annotated[Literal[1], BeforeValidator(_whole)] = Field(1, alias="schema")
    host: str = Field(min_length=1, description="an ssh alias, local, or demo")
    transport: Literal["asyncssh", "openssh"] = "asyncssh"
    autostart: Flag = False
    engine: EngineSection
    launcher: LauncherSection = LauncherSection()
    knobs: Knobs = Knobs()
    workload: WorkloadSection = WorkloadSection()
    passes: Passes = Passes()
    limits: Limits = Limits()
    stalls: dict[str, Real] = Field(default_factory=dict)
    expect: Expect = Expect()
    queue: list[str] = Field(default_factory=list, description="the starting queue, put in once")

    @model_validator(mode="after")
    def _stall_names(self) -> Profile:
        for name in self.stalls:
            if name not in STALL_DEFAULTS:
                raise KeyRuleError("stalls", name, message=f"unknown phase; known: {', '.join(STALL_DEFAULTS)}")
        return self

    def stall_s(self, phase: str) -> float:
        """Seconds of silence that `phase` may have."""
        return self.stalls.get(phase, STALL_DEFAULTS.get(phase, 600.0))


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
