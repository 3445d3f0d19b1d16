"""What both transports' connectors share: a target, whoever answers its questions, and lanes over what was opened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ddconsole.adapters.ssh.lanes import CHANNELS, L, Lane, Lanes, Line
from ddconsole.adapters.ssh.link import Times
from ddconsole.core.ports import NoAsker

if TYPE_CHECKING:
    from ddconsole.adapters.ssh.target import SshTarget
    from ddconsole.core.ports import Asker, Host


Opened = TypeVar("Opened", bound=Line, covariant=True)


class Opening(Protocol[Opened]):
    """Opens connections to one target."""

    async def open(self) -> Opened:
        """A fresh one, logged in."""
        ...


class LanesConnector(ABC, Generic[L]):
    """The `Connector` port for one target; each call is a fresh connection.

    `asker` answers what a connection has to ask; `accept_new` takes an unknown host key unseen.
    """

    def __init__(
        self,
        target: SshTarget,
        *,
        name: str | None = None,
        channels: int = CHANNELS,
        asker: Asker | None = None,
        accept_new: bool = False,
        times: Times | None = None,
    ) -> None:
        self._name = name or target.host
        self._channels = channels
        self._target = target
        self._times = times or Times()
        self._opening = self._open_with(asker or NoAsker(), accept_new)

    async def connect(self) -> Host:
        """A fresh connection, its host key checked.

        Raises:
            AnswerNeededError: a person has to answer first.
            UnreachableError: with what failed, the evidence, and the remedy.
        """
        first = await self._opening.open()
        return self._host(first, Lanes(self._name, Lane(first, self._channels), self._opening.open, self._channels))

    @abstractmethod
    def _open_with(self, asker: Asker, accept_new: bool) -> Opening[L]:
        """What opens connections to the target."""

    @abstractmethod
    def _host(self, first: L, lanes: Lanes[L]) -> Host:
        """The host behind the first connection."""
