"""Addresses of reward models and judges that run elsewhere: which there are, and what each says. Nothing is asked here.

http://host:5001                a reward model: `cascade rm serve`
vllm:http://host:8000           vLLM's `/classify`; `vllm-pooling:` and `vllm-score:` its other endpoints
http://host:8000/v1#MODEL       a judge, by its name there
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal
from urllib.parse import urldefrag, urlsplit

from cascade_core.errors import UsageError

Api = Literal["", "classify", "pooling", "score"]
APIS: dict[str, Api] = {"vllm": "classify", "vllm-pooling": "pooling", "vllm-score": "score"}
REWARD_MODEL = "reward-model:"
"""What the address of `RewardModelEndpoint` begins with; JSON follows."""


def reward_model(address: str) -> tuple[Api, str]:
    """Which endpoint of vLLM is asked (`""`: none, it is our own server), and where.

    Raises:
        UsageError: it is no such address.

    >>> reward_model("vllm:http://h:8000")
    ('classify', 'http://h:8000')
    """
    kind, _, rest = address.partition(":")
    api, url = (APIS[kind], rest) if kind in APIS else ("", address)
    if not _is_web(url):
        raise UsageError(
            f"a reward model is at http(s)://host[:port] or {', '.join(f'{one}:http://…' for one in APIS)}, found {address!r:.80}"
        )
    return api, url


def judge(address: str) -> tuple[str, str]:
    """The part before `/chat/completions`, and the name of the model.

    Raises:
        UsageError: it is no such address.
    """
    url, model = urldefrag(address)
    if not model or not _is_web(url):
        raise UsageError(f"a judge is at http(s)://host[:port]/v1#MODEL, found {address!r:.80}")
    return url, model


def why_not(read: Callable[[str], object], address: str) -> str:
    """Why `read`, one of the two above, takes no such address; `""` where it does."""
    try:
        read(address)
    except UsageError as cause:
        return str(cause)
    return ""


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none, or brackets that do not close
        return False
