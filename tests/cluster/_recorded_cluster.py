"""The arguments that a cluster of this machine is started with."""

from __future__ import annotations

import types

from manyfit.cluster import _local_cluster as _start


def recorded(monkeypatch, module: str | None = None) -> dict:
    """Have local_cluster start nothing, and give what it would start a cluster with."""
    options = {}
    monkeypatch.setattr(_start, "_start", lambda cls, given: options.update(given, cls=cls))
    client = types.SimpleNamespace(register_plugin=lambda plugin: None)
    monkeypatch.setattr(_start, "_client_class", lambda: lambda cluster, **more: client)
    return options
