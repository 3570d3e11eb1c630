"""One Dask cluster of two processes for all tests that need one, started by the first."""

from __future__ import annotations

import atexit
import logging
from functools import lru_cache
from typing import Any

from distributed import Client, LocalCluster


@lru_cache
def shared_client() -> Client:
    """The client of two workers, processes with one thread each."""
    client = new_client(2)
    atexit.register(stopped, client)
    return client


def new_client(workers: int, **options: Any) -> Client:
    """A client of so many workers, which is not that of code that asks for none."""
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", **options
    )
    return Client(cluster, set_as_default=False)


def stopped(client: Client) -> None:
    """Stop a cluster quietly: whoever still has blocks there does not need them."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    client.close()
    client.cluster.close()
