"""Events of a run as JSON posts: in order, tried again until they are taken, signed where that is wanted.

One post is one batch, `{"run": …, "events": […]}`: what has happened since the last post, so a slow receiver gets fewer and
larger ones. A receiver takes a post by answering 2xx. No answer, 408, 425, 429 and 5xx mean "later": the same bytes are
sent again, after longer and longer waits, for `retry_seconds`. Any other answer is final, redirects too: a post with a
token in it goes where the spec says and nowhere else. The response's body is not read.

The signature is the HMAC-SHA256 (RFC 2104) of the time in `Cascade-Timestamp`, a dot, and the body: a receiver that
refuses old times refuses a recorded post. `delivery.py` is what goes over the wire.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from cascade_core import RunInfo, Secret, Tracker

if TYPE_CHECKING:
    from cascade_plugin_webhook.delivery import Delivery


@dataclass
class WebhookTracker(Tracker):
    """Posts every event.

    Attributes:
        url: where to: http or https. `{env: NAME}` or `{file: PATH}` where the URL itself is a secret.
        kinds: the kinds of events to post, `[eval, run_end]` say; all of them unless given.
        token: sent as `Authorization: Bearer …`.
        sign: the key of the signature in `Cascade-Signature`.
        timeout_seconds: for each of connecting, sending and the answer, 0.1 to 300.
        retry_seconds: how long a batch is tried for before it counts as lost, 0 to 86400; 0 tries once.
    """

    name: ClassVar[str] = "webhook"
    url: str | Secret
    kinds: list[str] | None = None
    token: Secret | None = None
    sign: Secret | None = None
    timeout_seconds: float = 10.0
    retry_seconds: float = 300.0

    def __post_init__(self) -> None:
        self._delivery: Delivery | None = None
        self._run: Mapping[str, Any] = {}
        if isinstance(self.url, str):
            check_url(self.url)
        if self.kinds is not None and not self.kinds:
            raise ValueError("kinds must name a kind of event, found an empty list; leave it out for all of them")
        for option, least, most in (("timeout_seconds", 0.1, 300.0), ("retry_seconds", 0.0, 86_400.0)):
            value = getattr(self, option)
            if not least <= value <= most:
                raise ValueError(f"{option} must lie in {least:g}..{most:g}, found {value:g}")

    def start(self, run: RunInfo) -> None:
        from cascade_plugin_webhook.delivery import Delivery

        url = self.url if isinstance(self.url, str) else check_url(self.url.reveal())
        token = self.token.reveal() if self.token else None
        key = self.sign.reveal() if self.sign else None
        self._delivery = Delivery(url, token, key, self.timeout_seconds, self.retry_seconds)
        self._run = {"id": run.id, "name": run.name}

    def events(self, events: Sequence[Mapping[str, Any]]) -> None:
        wanted = [event for event in events if self.kinds is None or event.get("kind") in self.kinds]
        if wanted and self._delivery is not None:
            self._delivery.post({"run": self._run, "events": wanted})

    def finish(self, status: str) -> None:
        if self._delivery is not None:
            self._delivery.close()


def check_url(url: str) -> str:
    """The URL, if it is one to post to; a refusal does not repeat it.

    Raises:
        ValueError: it is no http(s) URL with a host, or it holds a user's name.
    """
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_good = False
    if not is_good or any(char.isspace() or ord(char) < 32 for char in url):
        raise ValueError("url must be http://… or https://… with a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "url must hold no user and password; give a token as {env: NAME}, or the whole url as {env: NAME}"
        )
    return url
