"""The tracker `webhook`: posts the events of a run to a URL. The entry point; `tracker.py` is what it offers."""

from __future__ import annotations

from cascade_core import Tracker, hookimpl
from cascade_plugin_webhook.tracker import WebhookTracker

__all__ = ["WebhookTracker", "cascade_trackers"]


@hookimpl
def cascade_trackers() -> list[type[Tracker]]:
    return [WebhookTracker]
