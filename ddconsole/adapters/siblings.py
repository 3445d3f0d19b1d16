"""Other profiles of the same host and the same engine: what they have measured need not be measured again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.adapters.paths import known_profiles
from ddconsole.adapters.profile_file import load_file
from ddconsole.core.errors import ProfileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.core.ports import Store
    from ddconsole.core.profile import Profile


def siblings(loaded: LoadedProfile, store: Store) -> Iterator[tuple[str, Profile]]:
    """Profiles that a name finds, with a queue in the store, on the host and with the very engine of `loaded`.

    A profile that cannot be read is passed over: it has no say in what another one may queue.
    """
    for name, path in known_profiles().items():
        if name == loaded.name or not store.queue(name).items:
            continue
        try:
            other = load_file(path).profile
        except ProfileError:
            continue
        if _machine(other) == _machine(loaded.profile):
            yield name, other


def _machine(profile: Profile) -> tuple[object, ...]:
    engine = profile.engine
    return profile.host, engine.command, engine.model, engine.drafter, engine.args, engine.env
