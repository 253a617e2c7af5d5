"""What the environment says in the conversations of a stage: the domain's own `reply`, asked in a scoring process.

The engine leads the conversation: it samples the model's turn, asks here (`/reply`) with all turns so far, and reads what it is told: the text
that follows in the model's own template. Nothing is kept between two turns, so that a service that is started again goes on in the middle
of a conversation. A domain that fails at a reply makes of the sample one that could not be judged; its engine hands it in as given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cascade_core.errors import ScoringError, TrainerError
from cascade_core.rows import Row
from cascade_core.scoring import Scorer
from cascade_core.serve.wire import Refused, shown, wrong
from cascade_core.template import Prompt

Continue = Callable[[Row, str], Prompt]


class Talk:
    """The conversations of a stage's domains; for one event loop.

    Args:
        domains: those of the stage.
        continued: a row and what the environment says to what the model reads next.
    """

    def __init__(self, scorer: Scorer, domains: Sequence[str], continued: Continue | None) -> None:
        self._scorer, self._domains, self._continued = scorer, domains, continued
        self._most: dict[str, int] | None = None
        self._turn = asyncio.Lock()

    async def begin(self) -> None:
        """Asks each domain once how long its conversations may be; one that cannot say holds none, and fails at its samples."""
        if self._most is not None:
            return
        async with self._turn:
            if self._most is None:
                found = [await asyncio.to_thread(self._asked, domain) for domain in self._domains]
                self._most = dict(zip(self._domains, found, strict=True))

    def _asked(self, domain: str) -> int:
        try:
            return self._scorer.most_turns(domain)
        except ScoringError:
            return 0

    def most_turns(self, row: Row) -> int:
        """Turns that the model may have in the conversation of a task; 0 where there is none."""
        return (self._most or {}).get(str(row["domain"]), 0) if self._continued else 0

    async def reply(self, row: Row, given: Any) -> dict[str, Any]:
        """What the environment says after `given`: `said` and the `text` that the model reads, or `said` null, or why it `failed`.

        Raises:
            Refused: these are no turns of such a conversation.
        """
        await self.begin()
        turns = self._turns(row, given, odd=True)
        if (len(turns) + 1) // 2 >= self.most_turns(row):
            return {"said": None}
        try:
            said = await asyncio.wrap_future(self._scorer.reply(row, turns))
            if said is None:
                return {"said": None}
            return {"said": said, **self._read(row, said)}
        except (ScoringError, TrainerError) as cause:
            if isinstance(cause, ScoringError) and self._scorer.is_closed:
                raise Refused(f"the service is ending: {cause}", status=503, again=2) from cause
            return {"said": None, "failed": str(cause)}

    async def check(self, row: Row, given: Any) -> None:
        """Lets turns pass that end with the model's.

        Raises:
            Refused: these are no turns of such a conversation.
        """
        await self.begin()
        self._turns(row, given, odd=True)

    def _read(self, row: Row, said: str) -> dict[str, Any]:
        assert self._continued is not None
        found = self._continued(row, said)
        return {"text": found.text, "prefill": found.prefill, "ids": found.ids}

    def earlier(self, row: Row, given: Any) -> dict[str, Any]:
        """The fields of a sampled row whose response is the last turn of a conversation.

        Raises:
            Refused: these are no turns of such a conversation.
        """
        turns = self._turns(row, given, odd=False)
        return {"turns": turns, "prefill": self._read(row, turns[-1]["content"])["prefill"]}

    def _turns(self, row: Row, given: Any, *, odd: bool) -> list[dict[str, str]]:
        most = 2 * self.most_turns(row) - (1 if odd else 2)
        if most < 1:
            raise wrong("body.turns", given, f"absent: tasks of {row['domain']!r} are no conversations here")
        if not isinstance(given, list) or len(given) > most or len(given) % 2 != odd:
            raise wrong("body.turns", given, f"a list of 1 … {most} turns, of the model and the environment in turns")
        for number, turn in enumerate(given):
            role = "user" if number % 2 else "assistant"
            if not isinstance(turn, dict) or set(turn) != {"role", "content"} or turn["role"] != role:
                raise wrong(f"body.turns[{number}]", turn, f"an object with role {role!r} and content")
            if not isinstance(turn["content"], str):
                raise wrong(f"body.turns[{number}].content", shown(turn["content"]), "a text")
        return given


def has_turns(request: Mapping[str, Any]) -> bool:
    """Whether a sample says anything of earlier turns, right or wrong; an empty list says that there were none."""
    return request.get("turns") is not None and request["turns"] != []
