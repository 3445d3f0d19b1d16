"""SGLang, stock or a DDTree fork, as the profile describes it: the `Engine` port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.config import Algorithm, effective_config
from ddconsole.core.masking import Masker
from ddconsole.core.ports import Identity
from ddconsole.engines.sglang import identity, speculation
from ddconsole.engines.sglang.bootlog import BootLog
from ddconsole.engines.sglang.command import launch_plan
from ddconsole.engines.sglang.counters import decode_tick, read_counts
from ddconsole.engines.sglang.dialect import ChatDialect, auth_headers, dialect_for, native_dialect
from ddconsole.engines.sglang.http import EngineHttp
from ddconsole.engines.sglang.preflight import preflight

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from ddconsole.core.config import Config, Effective
    from ddconsole.core.errors import Failure
    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports import DecodeTick, Host, Launched, LaunchPlan, Preflight, RequestDialect, ServerCounts
    from ddconsole.core.profile import Profile
    from ddconsole.core.progress import BootFacts


class SglangEngine:
    """One profile's engine. It holds no process; it knows how to ask for one and how to judge it.

    Args:
        secrets: the profile's secrets by variable, read already; they go to the host by file.
        transport: for tests, in place of a real connection.
    """

    def __init__(
        self, profile: Profile, secrets: Mapping[str, str], *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._profile = profile
        self._secrets = dict(secrets)
        self._transport = transport
        self._dialect: RequestDialect = native_dialect(profile)
        self._masker = Masker(tuple(self._secrets.values()))

    @property
    def port(self) -> int | None:
        """The profile's port; None for `auto`."""
        port = self._profile.engine.port
        return None if port == "auto" else port

    @property
    def dialect(self) -> RequestDialect:
        """`/generate` until `identify` has told the version; chat from 0.5.20 on."""
        return self._dialect

    def effective(self, config: Config) -> Effective:
        """What it would really run."""
        return effective_config(config, self._profile.knobs.topk.rule)

    def plan(self, config: Config, port: int) -> LaunchPlan:
        """The command for `config` on `port`.

        Raises:
            UsageError: the config asks for what this engine's spelling of the knobs cannot give.
        """
        return launch_plan(self._profile, config, port, self._secrets)

    def tracker(self) -> BootLog:
        """A fresh reader of its log."""
        return BootLog(tuple(self._secrets.values()))

    async def preflight(self, host: Host, config: Config, port: int) -> Preflight:
        """What can be known before paying for a launch."""
        return await preflight(self._profile, host, config, port)

    async def ready(self, base_url: str) -> bool:
        """Whether it says that it is ready."""
        return await self._http(base_url).ready()

    async def identify(
        self, base_url: str, host: Host, launched: Launched, config: Config, facts: BootFacts
    ) -> Identity | Failure:
        """Prove that what answers is what was asked for, and learn which dialect it speaks."""
        info, why_not = await self._http(base_url).server_info()
        names = (identity.TOKEN_VARIABLE, *identity.variables(self._profile, config))
        environment = await identity.read_environment(host, launched.pid, names)
        shown = self._masker.data(info or {})
        seen = identity.Witnesses(shown, facts, environment, why_not)
        found = identity.judge(self._profile, config, launched, seen)
        if isinstance(found, Identity):
            self._dialect = dialect_for(found.version, self._profile)
        return found

    async def speculates(self, base_url: str, config: Config) -> RequestRecord | Failure:
        """One real request of at least 2b tokens, with verify steps counted where a drafter is configured."""
        http, tokens = self._http(base_url), speculation.tokens_to_ask(config)
        record = await speculation.first_request(http, self._dialect, tokens)
        silent = config.algorithm is not Algorithm.OFF and record.ok and not record.verify_steps
        if silent and isinstance(self._dialect, ChatDialect):
            # a fork may be younger by its version than its chat endpoint is: /generate counts in all of them
            native = native_dialect(self._profile)
            record = await speculation.first_request(http, native, tokens)
            if record.verify_steps:
                self._dialect = native
        return speculation.judge(record, config) or record

    async def flush(self, base_url: str) -> bool:
        """Empty the prefix cache; False when the engine refused."""
        return await self._http(base_url).flush()

    async def counts(self, base_url: str) -> ServerCounts | None:
        """Its counters now; None when it has none or cannot be asked."""
        return await read_counts(self._http(base_url))

    def decode_tick(self, line: str) -> DecodeTick | None:
        """What a line of its log says of decoding; None for any other line."""
        return decode_tick(line)

    async def abort(self, base_url: str) -> None:
        """Abort all requests, before a stop."""
        await self._http(base_url).abort()

    def _http(self, base_url: str) -> EngineHttp:
        headers = auth_headers(self._profile, admin=True)
        return EngineHttp(base_url, headers=headers, transport=self._transport)
