"""What a set of requests at one concurrency comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddconsole.core import metrics
from ddconsole.core.prefix import Prefixes, prefixes, unmixed
from ddconsole.core.stats import Spread, ratio, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ddconsole.core.metrics import RequestRecord


@dataclass(frozen=True, slots=True)
class Objectives:
    """What a request has to keep to count for goodput, in seconds; None asks nothing."""

    ttft_s: float | None = None
    tpot_s: float | None = None

    @property
    def any(self) -> bool:
        """Something is asked."""
        return self.ttft_s is not None or self.tpot_s is not None

    def met_by(self, record: RequestRecord) -> bool:
        """All objectives hold. A one-token answer has no TPOT and meets that one, as in vLLM's goodput."""
        first, per_token = metrics.ttft(record), metrics.tpot(record)
        ttft_met = self.ttft_s is None or (first is not None and first <= self.ttft_s)
        return ttft_met and (self.tpot_s is None or per_token is None or per_token <= self.tpot_s)


@dataclass(frozen=True, slots=True)
class ClientLoad:
    """What the measuring cost this machine, so that a level where the client was the bottleneck is marked.

    Attributes:
        cpu_share: CPU seconds of this process, and of the ssh that it started, ÷ wall seconds; 1.0 is one whole core.
        lag_p99_s: 99th percentile of how late the event loop came back to a timer.
    """

    cpu_share: float | None = None
    lag_p99_s: float | None = None

    @property
    def saturated(self) -> bool:
        """The client may have slowed what it measured: over 80 % of a core, or 20 ms behind at p99."""
        return (self.cpu_share or 0.0) > 0.8 or (self.lag_p99_s or 0.0) > 0.020


@dataclass(frozen=True, slots=True)
class Sums:
    """Totals over requests that count, from which pooled figures are made; they add up over levels and repeats.

    Attributes:
        requests, tokens, e2e_s: n, ΣC, ΣE2E.
        decoded, decode_s: Σ(C − 1), Σ(tn − t1) over requests with at least two tokens.
        speculated, spec_tokens, steps, step_s: of requests with verify steps, n, ΣC, ΣV, Σ(tn − t1).
        accepted: Σ accepted drafts; None where the engine did not count them.
    """

    requests: int = 0
    tokens: int = 0
    e2e_s: float = 0.0
    decoded: int = 0
    decode_s: float = 0.0
    speculated: int = 0
    spec_tokens: int = 0
    steps: int = 0
    step_s: float = 0.0
    accepted: int | None = None

    @property
    def tau(self) -> float | None:
        """ΣC/ΣV."""
        return ratio(self.spec_tokens, self.steps)

    @property
    def e2e_rate(self) -> float | None:
        """ΣC/ΣE2E, tok/s."""
        return ratio(self.tokens, self.e2e_s)

    @property
    def decode_rate(self) -> float | None:
        """Σ(C − 1)/Σ(tn − t1), tok/s."""
        return ratio(self.decoded, self.decode_s)

    @property
    def per_step_s(self) -> float | None:
        """Σ(tn − t1)/ΣV, seconds."""
        return ratio(self.step_s, self.steps)

    def __add__(self, other: Sums) -> Sums:
        """Both together."""
        known = [value for value in (self.accepted, other.accepted) if value is not None]
        added: dict[str, Any] = {
            name: getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__ if name != "accepted"
        }
        return Sums(**added, accepted=sum(known) if known else None)

    def to_json(self) -> dict[str, Any]:
        """All of it, seconds unrounded."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Sums:
        """The inverse of `to_json`; what a newer program added is passed over."""
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})


def sums_of(counted: Sequence[RequestRecord]) -> Sums:
    """The totals of requests that count."""
    decoding = [record for record in counted if metrics.tpot(record) is not None]
    speculated = [record for record in counted if metrics.tau(record) is not None]
    return Sums(
        requests=len(counted),
        tokens=sum(record.completion_tokens or 0 for record in counted),
        e2e_s=sum(record.end_s for record in counted),
        decoded=sum((record.completion_tokens or 0) - 1 for record in decoding),
        decode_s=sum(metrics.decode_s(record) or 0.0 for record in decoding),
        speculated=len(speculated),
        spec_tokens=sum(record.completion_tokens or 0 for record in speculated),
        steps=sum(record.verify_steps or 0 for record in speculated),
        step_s=sum(metrics.decode_s(record) or 0.0 for record in speculated),
        accepted=_sum_known(record.accepted_drafts for record in speculated),
    )


@dataclass(frozen=True, slots=True)
class LevelSummary:
    """One concurrency level. Only requests that count are in its figures; `failed` says how many do not.

    Attributes:
        wall_s: D, from the first request sent to the end of the last response.
        output_rate: output throughput, ΣC/D, tok/s.
        request_rate: requests that count / D.
        goodput: requests that meet every objective / D; None when nothing is asked.
        tau_each: spread of the requests' own C/V.
        sums: what pooled figures are made of: τ, tok/s end to end and while decoding, step time.
        ttft … e2e: seconds, by the definitions in `core/metrics.py`; those that hold the prefill (ttft, ttfo, e2e) are
            of requests that found no prefix in the cache, unless all did.
        prefixes: how many did, and their figures apart.
    """

    concurrency: int
    requests: int
    failed: int
    truncated: int
    wall_s: float
    prompt_tokens: int | None
    cached_tokens: int | None
    output_rate: float | None
    request_rate: float | None
    goodput: float | None
    tau_each: Spread | None
    ttft: Spread | None
    ttfo: Spread | None
    tpot: Spread | None
    itl: Spread | None
    e2e: Spread | None
    histogram: tuple[int, ...] | None
    sums: Sums
    prefixes: Prefixes
    load: ClientLoad = ClientLoad()

    def to_json(self) -> dict[str, Any]:
        """Units in the names, None for what is unknown."""
        acceptance = None if self.histogram is None else metrics.acceptance_by_position(self.histogram)
        return {
            "concurrency": self.concurrency,
            "requests": self.requests,
            "failed": self.failed,
            "truncated": self.truncated,
            "wall_s": _rounded(self.wall_s),
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.sums.tokens,
            "verify_steps": self.sums.steps if self.sums.speculated else None,
            "output_tok_s": _rounded(self.output_rate),
            "requests_per_s": _rounded(self.request_rate),
            "goodput_per_s": _rounded(self.goodput),
            "tok_s_e2e": _rounded(self.sums.e2e_rate),
            "tok_s_decode": _rounded(self.sums.decode_rate),
            "step_ms": _rounded(self.sums.per_step_s, 1000),
            "tau": _rounded(self.sums.tau),
            "tau_n": self.sums.speculated,
            "tau_per_request": _spread_json(self.tau_each, 1),
            "ttft_ms": _spread_json(self.ttft),
            "ttfo_ms": _spread_json(self.ttfo),
            "tpot_ms": _spread_json(self.tpot),
            "itl_ms": _spread_json(self.itl),
            "e2e_ms": _spread_json(self.e2e),
            **self.prefixes.to_json(),
            "sums": self.sums.to_json(),
            "accept_histogram": None if self.histogram is None else list(self.histogram),
            "acceptance_by_position": None if acceptance is None else [round(share, 4) for share in acceptance],
            "client_cpu_share": _rounded(self.load.cpu_share),
            "client_lag_p99_ms": _rounded(self.load.lag_p99_s, 1000),
            "client_saturated": self.load.saturated,
        }


def summarise_level(
    records: Sequence[RequestRecord],
    wall_s: float,
    concurrency: int,
    *,
    objectives: Objectives | None = None,
    load: ClientLoad | None = None,
) -> LevelSummary:
    """The summary of requests that were sent at one concurrency within `wall_s` seconds."""
    counted = [record for record in records if record.ok]
    sums, fresh = sums_of(counted), unmixed(counted)
    asked = objectives is not None and objectives.any
    met = sum(objectives.met_by(record) for record in counted) if objectives is not None else 0
    return LevelSummary(
        concurrency=concurrency,
        requests=len(records),
        failed=len(records) - len(counted),
        truncated=sum(record.finish_reason == "length" for record in counted),
        wall_s=wall_s,
        prompt_tokens=_sum_known(record.prompt_tokens for record in counted),
        cached_tokens=_sum_known(record.cached_tokens for record in counted),
        output_rate=ratio(sums.tokens, wall_s),
        request_rate=ratio(len(counted), wall_s),
        goodput=ratio(met, wall_s) if asked else None,
        tau_each=_spread_of(metrics.tau(record) for record in counted),
        ttft=_spread_of(metrics.ttft(record) for record in fresh),
        ttfo=_spread_of(metrics.ttfo(record) for record in fresh),
        tpot=_spread_of(metrics.tpot(record) for record in counted),
        itl=spread([gap for record in counted for gap in metrics.itl(record)]),
        e2e=_spread_of(metrics.e2e(record) for record in fresh),
        histogram=metrics.histogram_sum(counted),
        sums=sums,
        prefixes=prefixes(counted),
        load=load or ClientLoad(),
    )


def _spread_of(values: Iterable[float | None]) -> Spread | None:
    return spread([value for value in values if value is not None])


def _sum_known(values: Iterable[int | None]) -> int | None:
    """The sum of what is known, None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _rounded(value: float | None, scale: float = 1.0) -> float | None:
    return None if value is None else round(value * scale, 4)


def _spread_json(values: Spread | None, scale: float = 1000) -> dict[str, float | int] | None:
    return None if values is None else values.to_json(scale)
