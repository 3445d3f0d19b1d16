"""What the inner rooms need of the world: Protocols that adapters, engines and passes fulfil."""

from ddconsole.core.ports.engine import (
    BootTracker,
    Engine,
    Finding,
    Identity,
    Launched,
    Launcher,
    LaunchPlan,
    Liveness,
    StopProof,
)
from ddconsole.core.ports.host import ByteStream, Clock, Completed, Connector, Forward, Host, Lease
from ddconsole.core.ports.measure import Answer, HttpRequest, Prompt, RequestDialect, Sandbox, SandboxResult
from ddconsole.core.ports.store import AttemptKey, KeptEngine, RunLock, Store

__all__ = [
    "Answer",
    "AttemptKey",
    "BootTracker",
    "ByteStream",
    "Clock",
    "Completed",
    "Connector",
    "Engine",
    "Finding",
    "Forward",
    "Host",
    "HttpRequest",
    "Identity",
    "KeptEngine",
    "LaunchPlan",
    "Launched",
    "Lease",
    "Launcher",
    "Liveness",
    "Prompt",
    "RequestDialect",
    "RunLock",
    "Sandbox",
    "SandboxResult",
    "StopProof",
    "Store",
]
