"""Finds the addresses of verl's inference servers, which change: ports are random, and hybrid servers leave the load balancer to train."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Iterable, Optional

#: Longest wait for a server in seconds: hybrid servers leave the load balancer while they train.
SERVERS_S = 1800.0
PAUSE_S = 1.0


class NoServers(Exception):
    """verl's load balancer had no server during the wait."""


async def server_urls(manager: Any, wait_s: float = SERVERS_S, pause_s: float = PAUSE_S) -> Optional[list[str]]:
    """
    Returns the current OpenAI-compatible URLs of verl's servers. ``manager``: the server manager of an agent loop. The load
    balancer (verl 0.8 and later) or the manager itself (verl 0.7) lists the servers. None: earlier versions of verl.
    Raises NoServers.
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
    """``addresses``: ``host:port`` as verl writes it, with brackets around an IPv6 address."""
    return [f"http://{address}/v1" for address in addresses]
