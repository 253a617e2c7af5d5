"""A client of an OpenAI-compatible server: one row in, one `Reply` out, whatever the server does.

What may pass is tried again, after a pause that doubles and is drawn at random, or as long as the server's `Retry-After`
says: 408, 409, 425, 429, 5xx, no connection, no answer in time, and whatever is no whole answer (a page of HTML, half a
body, JSON of another shape). Other refusals are final at once. A request that failed for good is a `Reply` with its
cause; nothing is raised for one request, and no failure looks like a response.

How many requests run at once, what becomes of replies and how they are judged is not decided here.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlsplit

from cascade_core.answer import Garbage, Refused, Reply, read_reply
from cascade_core.errors import UsageError
from cascade_core.rows import Row
from cascade_core.settings import Modes, Sampling
from cascade_core.template import EMPTY_THOUGHT, messages

if TYPE_CHECKING:
    import httpx2

Api = Literal["chat", "completions"]
Answer = TypeVar("Answer")

PATHS: dict[str, str] = {"chat": "/chat/completions", "completions": "/completions"}
PASSING = frozenset({408, 409, 425, 429})
LONGEST_PAUSE_SECONDS = 60.0
LONGEST_RETRY_AFTER_SECONDS = 600.0
LARGEST_BODY_BYTES = 64 * 2**20
_HERE = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Endpoint:
    """Where the server is and how patiently it is asked.

    Attributes:
        url: the part before `/chat/completions`, such as `http://localhost:8000/v1`.
        model: the name that the server knows the model by.
        key: sent as a bearer token; never shown, and cut out of every message.
        api: `chat` sends messages, `completions` the prompt as plain text.
        body: more fields of every request, over the usual ones; `None` takes a field away.
        timeout_seconds: for one whole answer, from the connection to its last byte.
        tries: of one request, the first included.
        pause_seconds: the longest pause after the first try; it doubles with each, up to 60 s.
        modes: how a row's mode is said to the server's model.

    Raises:
        UsageError: the address is none of http or https, or carries a password, a query or a fragment.
    """

    url: str
    model: str
    key: str = field(default="", repr=False)
    api: Api = "chat"
    body: Mapping[str, Any] = field(default_factory=dict)
    timeout_seconds: float = 600.0
    tries: int = 6
    pause_seconds: float = 2.0
    modes: Modes = "switch"

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            good = False
        if not good or "@" in self.url or "?" in self.url or "#" in self.url:
            shown = "an address with '@', '?' or '#' in it" if set("@?#") & set(self.url) else repr(self.url)
            raise UsageError(f"an endpoint is http(s)://host[:port]/path, without password or query, found {shown}")
        object.__setattr__(self, "url", self.url.rstrip("/"))
        if not self.key.isascii() or not self.key.isprintable():
            raise UsageError("the API key holds characters that no HTTP header takes")

    def check_mode(self, mode: str) -> None:
        """Lets a mode pass that the server can be told.

        Raises:
            UsageError: it cannot.
        """
        if mode and self.modes == "switch" and self.api == "completions":
            raise UsageError(
                f"the mode {mode!r} of a task cannot be said to a server of completions, which has no chat template's switch; take"
                " --api chat, or --modes flags, prefill or none"
            )
        if mode == "no_think" and self.modes == "prefill" and self.api == "chat":
            raise UsageError(
                "a server of chat completions cannot be told how its answer begins, and the mode 'no_think' is a prefill (modes:"
                " prefill); evaluate the model's folder, or take --modes switch if the server's template has that switch"
            )

    def prefill(self, row: Row) -> str:
        """What the answer to a row begins with, where that is said to the server."""
        is_said = self.modes == "prefill" and self.api == "completions"
        return EMPTY_THOUGHT if is_said and row.get("mode") == "no_think" else ""

    def payload(self, row: Row, sampling: Sampling, seed: int) -> dict[str, Any]:
        """The body of the request for one response to a row's prompt.

        Raises:
            UsageError: as `check_mode`.
        """
        self.check_mode(row.get("mode") or "")
        turns = messages(row, self.modes)
        asked: dict[str, Any] = {"model": self.model}
        if self.api == "chat":
            asked["messages"] = turns
        else:
            asked["prompt"] = "\n".join(turn["content"] for turn in turns) + self.prefill(row)
        asked |= {"max_tokens": sampling.max_response_tokens, "temperature": sampling.temperature, "seed": seed}
        if sampling.top_p < 1:
            asked["top_p"] = sampling.top_p
        if sampling.top_k:
            asked["top_k"] = sampling.top_k
        if row.get("mode") and self.modes == "switch":
            asked["chat_template_kwargs"] = {"enable_thinking": row["mode"] == "think"}
        asked |= self.body
        return {name: value for name, value in asked.items() if value is not None}


class Client:
    """Asks one endpoint; an async context manager, used inside one event loop.

    Args:
        concurrency: connections that are held open.
    """

    def __init__(self, endpoint: Endpoint, concurrency: int) -> None:
        import httpx2

        self._endpoint = endpoint
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if endpoint.key:
            headers["Authorization"] = f"Bearer {endpoint.key}"
        self._http = httpx2.AsyncClient(
            headers=headers,
            trust_env=urlsplit(endpoint.url).hostname not in _HERE,  # a proxy is not asked about this machine
            timeout=httpx2.Timeout(None, connect=min(30.0, endpoint.timeout_seconds)),
            limits=httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
        )

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def complete(self, row: Row, sampling: Sampling, seed: int) -> Reply:
        """One response to the row's prompt, or why there is none."""
        payload = self._endpoint.payload(row, sampling, seed)
        payload["stream"] = False
        try:
            return await self.asked(
                PATHS[self._endpoint.api], payload, lambda body: read_reply(body, self._endpoint.api)
            )
        except Refused as refusal:
            return Reply(error=f"refused: {refusal}", refused=True)
        except Garbage as garbage:
            return Reply(error=str(garbage))

    async def asked(self, path: str, payload: Mapping[str, Any], read: Callable[[bytes], Answer]) -> Answer:
        """What `read` makes of the answer to a request, which is tried again as long as that may help.

        Args:
            read: raises `Garbage` for a body that is no whole answer (asked again) and `Refused` for one that is final.

        Raises:
            Refused: the server will not answer this, however often it is asked.
            Garbage: it did not, in as many tries as there are.
        """
        body, cause = json.dumps(payload).encode("ascii"), ""
        for number in range(self._endpoint.tries):
            try:
                return read(await self._ask(path, body))
            except Refused as refusal:
                raise Refused(self._clean(str(refusal))) from None
            except Garbage as garbage:
                cause, wait = self._clean(str(garbage)), garbage.wait_seconds
            if number + 1 < self._endpoint.tries:
                longest = min(LONGEST_PAUSE_SECONDS, self._endpoint.pause_seconds * 2**number)
                await asyncio.sleep(max(wait, random.uniform(longest / 2, longest)))
        raise Garbage(f"no answer in {self._endpoint.tries} tries: {cause}")

    async def _ask(self, path: str, body: bytes) -> bytes:
        """The body of a good answer.

        Raises:
            Refused: the server will not answer this, however often it is asked.
            Garbage: it did not answer this time.
        """
        import httpx2

        url, limit = self._endpoint.url + path, self._endpoint.timeout_seconds
        try:
            async with asyncio.timeout(limit), self._http.stream("POST", url, content=body) as response:
                content = await _content(response)
        except TimeoutError:
            raise Garbage(f"no whole answer in {limit:g} s") from None
        except (httpx2.TransportError, httpx2.DecodingError) as cause:
            raise Garbage(f"{type(cause).__name__}: {cause}".removesuffix(": ")) from None
        except httpx2.InvalidURL as cause:
            raise Refused(f"the address cannot be read: {cause}") from None
        if response.is_success:
            return content
        told = f"HTTP {response.status_code}: {_brief(content)}"
        if response.status_code in PASSING or response.status_code >= 500:
            raise Garbage(told, retry_after(response.headers.get("Retry-After", "")))
        raise Refused(told)

    def _clean(self, text: str) -> str:
        """The text on one line, without the key, which servers like to quote."""
        line = " ".join(text.split())
        return line.replace(self._endpoint.key, "[key]") if self._endpoint.key else line


async def _content(response: httpx2.Response) -> bytes:
    """The whole body, up to a size that no answer has."""
    chunks, size = [], 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > LARGEST_BODY_BYTES:
            raise Garbage(f"an answer of more than {LARGEST_BODY_BYTES} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def retry_after(header: str) -> float:
    """Seconds that a `Retry-After` header asks to wait: a number or an HTTP date (RFC 9110, 10.2.3); 0 if it says nothing.

    More than ten minutes are not waited for.
    """
    try:
        seconds = float(header)
    except ValueError:
        try:
            when = parsedate_to_datetime(header)
        except ValueError:
            return 0.0
        seconds = (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(seconds, LONGEST_RETRY_AFTER_SECONDS) if seconds > 0 else 0.0


def _brief(content: bytes) -> str:
    """What a server says of an error, in one short line."""
    text = content[:4096].decode("utf-8", "replace")
    try:
        said = json.loads(text)
        error = said.get("error", said)
        text = str(error.get("message") or text) if isinstance(error, Mapping) else str(error)
    except (ValueError, AttributeError, RecursionError):
        pass
    line = " ".join(text.split())
    return line[:200] or "nothing more is said"
