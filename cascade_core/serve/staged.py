"""The service of one stage, as a process of its own: `python -m cascade_core.serve.staged SETTINGS.json`.

For a trainer of one's own whose engine is other processes (`openrlhf` has the same in a thread): it starts this, hands the address and the token to the engine, and asks `/stage` for the
metrics of finished steps. The settings are one JSON object (`Staged`); the token, which is no setting, is in the environment variable
`CASCADE_SERVE_TOKEN`. The first line on standard output is `{"address": …}`, once requests are answered. Started again with the
same settings it goes on with the stage (`rollout.py`).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from cascade_core.domain import DomainRef
from cascade_core.errors import CascadeError, UsageError
from cascade_core.judge import Judge
from cascade_core.refusals import sentence
from cascade_core.rows import Row, read
from cascade_core.scoring import Scorer
from cascade_core.serve.access import LOOPBACK, Access
from cascade_core.serve.app import Service, say
from cascade_core.serve.conversation import Continue
from cascade_core.serve.index import Index
from cascade_core.serve.journal import Journal
from cascade_core.serve.listen import address, bound, serve
from cascade_core.serve.rollout import Render, Rollouts
from cascade_core.settings import Modes, NonNegative, Positive, Scoring, Settings, Stage

TOKEN = "CASCADE_SERVE_TOKEN"


class Staged(Settings):
    """What the service of a stage must know; paths are folders and files of this machine."""

    stage: Stage
    seed: int
    folder: str
    prompts: str
    model: str
    modes: Modes = "switch"
    attempt: str
    start_step: NonNegative = 0
    domains: dict[str, dict[str, Any]]
    """What stands for each domain: the fields of `DomainRef`."""
    resources: dict[str, str] = Field({})
    scoring: Scoring = Scoring()
    host: str = "127.0.0.1"
    port: NonNegative = 0
    patience_seconds: Positive = 1800
    drain_seconds: Positive = 60


def run(settings: Staged, token: str) -> None:
    """Serves the stage until SIGTERM.

    Raises:
        CascadeError: it cannot be begun.
    """
    if settings.host not in LOOPBACK and not token:
        raise UsageError(f"host {settings.host} can be reached from elsewhere: {TOKEN} must hold a token")
    rows = list(read(Path(settings.prompts)))
    wanted = settings.stage.steps * settings.stage.rollout.prompts_per_step
    if len(rows) != wanted:
        raise UsageError(f"{settings.prompts} has {len(rows)} rows, the stage needs {wanted}")
    refs = {name: DomainRef(**ref) for name, ref in settings.domains.items()}
    folder = Path(settings.folder)
    render, continued = _renderers(settings.model, settings.modes)
    channel = bound(settings.host, settings.port)
    with channel, Scorer(refs, settings.scoring, settings.resources) as scorer:
        journal = Journal(folder, settings.attempt, settings.start_step)
        judge = Judge(scorer, settings.stage, settings.seed, folder, settings.scoring.max_error_rate)

        patience = float(settings.patience_seconds)

        def rollouts() -> Rollouts:
            return Rollouts(settings.stage, rows, judge, journal, render, patience, say, continued)

        service = Service(scorer, Index([Path(settings.prompts)]), access=Access(token), rollouts=rollouts)
        serve(service, channel, lambda: _tell(address(channel)), float(settings.drain_seconds))


def _tell(where: str) -> None:
    print(json.dumps({"address": where}), flush=True)


def _renderers(model: str, modes: str) -> tuple[Render, Continue]:
    from cascade_core.pretrained import load_tokenizer
    from cascade_core.template import Prompt, continuation, read

    tokenizer = load_tokenizer(model)

    def rendered(row: Row) -> Prompt:
        return read(tokenizer, row, modes)

    def continued(row: Row, said: str) -> Prompt:
        return continuation(tokenizer, row, said, modes)

    return rendered, continued


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """The status of the process: 0, or 2 and one line where it could not begin."""
    if len(arguments) != 1:
        say("usage: python -m cascade_core.serve.staged SETTINGS.json")
        return 2
    try:
        settings = Staged.model_validate_json(Path(arguments[0]).read_bytes())
        run(settings, environment.get(TOKEN, ""))
    except ValidationError as cause:
        first = cause.errors(include_url=False)[0]
        say(f"{arguments[0]}: {'.'.join(map(str, first['loc']))}: {sentence(first)}")
        return 2
    except OSError as cause:
        say(f"{cause.filename or arguments[0]}: {(cause.strerror or str(cause)).lower()}")
        return 2
    except CascadeError as cause:
        say(str(cause))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
