"""Where verl's inference servers listen: they take free ports at run time, and hybrid ones leave and come back."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Iterable, Optional

#: Seconds during which a balancer without any server is asked again: hybrid servers leave it while they train.
SERVERS_S = 1800.0
PAUSE_S = 1.0


class NoServers(Exception):
    """verl's load balancer holds no server, and held none for as long as was waited."""


async def server_urls(manager: Any, wait_s: float = SERVERS_S, pause_s: float = PAUSE_S) -> Optional[list[str]]:
    """
    The OpenAI-compatible addresses of verl's servers, as they are now: ask anew for each rollout. ``manager`` is what verl
    gives an agent loop as its server manager. Its load balancer tells them (verl 0.8 and later); where that one cannot, the manager
    holds its servers by address (verl 0.7). None: it tells nothing, as before that.
    """
    ask = getattr(getattr(manager, "_load_balancer", None), "get_all_servers", None)
    if ask is None:
        return _urls(getattr(manager, "_server_id_to_handle", None) or ()) or None
    until = time.monotonic() + wait_s
    while True:
        found = _urls(await ask.remote())
        if found:
            return found
        if time.monotonic() >= until:
            raise NoServers(f"verl's load balancer had no server for {wait_s:.0f} s")
        await asyncio.sleep(pause_s)


def _urls(addresses: Iterable[str]) -> list[str]:
    """``host:port`` as verl writes it, with brackets around an IPv6 address."""
    return [f"http://{address}/v1" for address in addresses]
