"""The suites: which passes each has, how big and how often they are, and what a good result of it has to keep."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from ddconsole.core.profile.problems import KeyRuleError
from ddconsole.core.profile.scalars import Flag, Model, Real, Whole


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


class Limits(Model):
    """What a good result has to keep."""

    ttft_ms: Real | None = None
    tpot_ms: Real | None = None
    require: dict[str, str] = Field(default_factory=dict, description="such as coding: 5/5")
    divergence: Literal["wrong", "warn"] = Field(
        "warn", description="what it is when greedy answers leave the chain's more often than the chain leaves itself"
    )


class Suite(Model):
    """Which passes a suite has, and how big they are. A pass that is named without a value has its defaults."""

    coding: CodingPass | None = None
    throughput: ThroughputPass | None = None
    quality: QualityPass | None = None
    time_box_s: Real | None = Field(None, gt=0, description="seconds after which no further request is asked")
    repeats: Whole = Field(1, ge=1, le=100, description="of a new experiment of this suite that does not say its own")
    limits: Limits | None = Field(None, description="what differs from the profile's `limits` for this suite")

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
