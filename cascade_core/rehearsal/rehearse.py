"""A spec taken through everything that its run will do, small and on a CPU: `rehearse`.

Three phases, each begun only where the one before found nothing wrong, since what is wrong would be met again, slowly: everything that
can be seen (`checks.py`, `reading.py`), in seconds; references and worthless answers judged, with the run's resources
(`verdicts.py`); a few steps of every stage, for real (`stages.py`), and of what they make the resources that wait for it (`waited.py`). The folder of the run is never touched: a rehearsal has
its own, which is removed if nothing was wrong.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cascade_core import provision, rehearsal, vllm_sampling
from cascade_core.composition import named
from cascade_core.errors import CascadeError, SpecError, UsageError
from cascade_core.plugins import Registry, registry
from cascade_core.rehearsal import measuring, tiny
from cascade_core.rehearsal.bench import Bench
from cascade_core.rehearsal.checks import Looked, look
from cascade_core.rehearsal.findings import Lengths, Rehearsal, Replaced
from cascade_core.rehearsal.reading import read
from cascade_core.rehearsal.shrink import shrunk
from cascade_core.rehearsal.stages import Stages
from cascade_core.rehearsal.verdicts import Advance, answers
from cascade_core.rehearsal.waited import Waited
from cascade_core.settings import Engine, Spec
from cascade_core.trainers import openrlhf_engine
from cascade_core.vllm_sampling import arguments
from cascade_core.waiting import stages_of

Bar = Callable[[str, int], AbstractContextManager[Advance]]


@contextmanager
def silent(what: str, total: int) -> Iterator[Advance]:
    """A bar that nobody sees."""
    yield lambda done: None


@dataclass(frozen=True)
class Plan:
    """How a spec is rehearsed.

    Args:
        place: the folder that the run is going to have; looked at, never touched.
        folder: for the rehearsal's files, new or empty; without one a temporary one is made.
        python: the interpreter that has OpenRLHF; without one `engine.python` of an `engine.cpu` spec, else the one of
            `rehearsal.place()`.
        steps: of each stage, at most.
        tasks: of each domain, whose references are judged.
        is_quick: no stage is tried, and OpenRLHF is not needed.
    """

    place: Path
    folder: Path | None = None
    python: Path | None = None
    steps: int = 2
    tasks: int = 64
    is_quick: bool = False


def rehearse(
    spec: Spec,
    plan: Plan,
    path: Path | None = None,
    settings: Iterable[str] = (),
    *,
    say: Callable[[str], None] = print,
    bar: Bar = silent,
    found: Registry | None = None,
) -> Rehearsal:
    """Tries the spec.

    Args:
        path: the spec file, so that mistakes name its lines; `settings` as after `--set`.
        say: where a line per piece of work goes.

    Raises:
        UsageError: `plan.folder` is not empty.
    """
    with _folder(plan.folder) as folder:
        made = _Trial(spec, plan, folder, say, bar)
        result = made.all(look(spec, path, list(settings), found or registry(), plan.place))
        if not result.status and plan.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    return result


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """The rehearsal's folder; an interrupted one is removed, unless the caller named it."""
    if given is not None:
        if given.exists() and (not given.is_dir() or any(given.iterdir())):
            raise UsageError(
                f"--folder {given} is not empty; a rehearsal never writes into what is there, name another"
            )
        given.mkdir(parents=True, exist_ok=True)
        yield given.absolute()
        return
    folder = Path(tempfile.mkdtemp(prefix="cascade-rehearsal-"))
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


class _Trial:
    """One rehearsal under way."""

    def __init__(self, spec: Spec, plan: Plan, folder: Path, say: Callable[[str], None], bar: Bar) -> None:
        self.spec, self.plan, self.folder, self.say, self.bar = spec, plan, folder, say, bar
        self.notes: list[str] = []
        self.lengths: dict[str, Lengths] = {}

    def all(self, seen: Looked) -> Rehearsal:
        """The phases, as far as nothing is wrong."""
        python = self._python(seen)
        self._arguments(seen, python)
        self._model(seen)
        if seen.mistakes:
            return self._result(seen)
        self.say("spec, data, model and places: nothing wrong")
        small, replaced = shrunk(self.spec, self.folder / "model", python, self.plan.steps, seen.found)
        with ExitStack() as stack:
            try:
                chosen = provision.chosen(seen.domains.values(), small.resources, seen.found)
                now = [one for one in chosen.values() if not stages_of(one)]
                running = stack.enter_context(provision.running(now, seen.found))
            except CascadeError as cause:
                seen.add("verdicts", f"{cause}; `cascade doctor` says what is missing")
                return self._result(seen)
            waited = Waited(small, seen.domains, chosen, running, seen.found)
            refs = {name: seen.found.reference(name, options) for name, options in named(small).items()}
            with Bench(seen, refs, small, running, waited) as bench:
                return self._judged(bench, replaced)

    def _judged(self, bench: Bench, replaced: list[Replaced]) -> Rehearsal:
        seen = bench.seen
        bench.rows = answers(seen, self.plan.tasks)
        with self.bar("judging", bench.left) as advance:
            for domain in bench.judge(advance):
                self.say(str(domain))
        for name in bench.waited.domains:
            self.say(f"domain {name}: judged later, {bench.waited.why(name)}")
        if seen.mistakes or self.plan.is_quick:
            return self._result(seen, domains=bench.tried)
        for one in replaced:
            self.say(f"  {one}")
        stages = Stages(bench, self.folder / "model", self.folder, self.say)
        tried = list(stages.train(self.lengths))
        measured = [*stages.pairs, *stages.measure()]
        try:
            if not bench.waited.failed:  # which was told, and lives no more
                bench.running.check()
        except CascadeError as cause:
            seen.add("stages", cause)
        self.notes += stages.notes
        return self._result(
            seen, replaced=replaced, domains=bench.tried, stages=tried, benchmarks=measured, is_whole=True
        )

    def _result(self, seen: Looked, **more: object) -> Rehearsal:
        kept = str(self.folder) if self.plan.folder is not None or (seen.mistakes and more.get("is_whole")) else ""
        if not kept:
            shutil.rmtree(self.folder, ignore_errors=True)
        return Rehearsal(mistakes=seen.mistakes, notes=self.notes, folder=kept, **more)  # type: ignore[arg-type]

    def _model(self, seen: Looked) -> None:
        """The tiny model, and what its tokenizer says of the prompts."""
        try:
            self.notes += tiny.make(self.spec.model, self.spec.seed, self.folder / "model")
            self.lengths, notes = read(seen, self.folder / "model")
        except CascadeError as cause:
            seen.add("model", cause)
            return
        self.notes += notes

    def _python(self, seen: Looked) -> str | None:
        """The interpreter that has OpenRLHF, where a stage needs it, and vLLM; that there is none is a stage's mistake alone."""
        needs = any((stage.trainer or self.spec.trainer) == "openrlhf" for stage in self.spec.stages)
        if self.plan.is_quick or not (needs or vllm_sampling.chosen(self.spec)):
            return None
        if not needs:
            own = Path(self.spec.engine.python) if self.spec.engine.cpu and self.spec.engine.python else None
            named = [self.plan.python, own, rehearsal.place() / "bin" / "python"]
            pythons = [str(one.expanduser()) for one in named if one is not None]
            return next((python for python in pythons if arguments.installed(python)), None)
        try:
            return str(interpreter(self.spec.engine, self.plan.python))
        except SpecError as cause:
            seen.add("place", cause)
            return None

    def _arguments(self, seen: Looked, python: str | None) -> None:
        """What vLLM, the run's own or another, says of the arguments that the spec gives it."""
        own = str(Path(self.spec.engine.python or sys.executable).expanduser())
        others = [python, self.plan.python, rehearsal.place() / "bin" / "python"]
        for is_mistake, what in measuring.checked(self.spec, [own, *(str(one) for one in others if one)]):
            if is_mistake:
                seen.add("spec", what)
            else:
                self.notes.append(what)


def interpreter(engine: Engine, given: Path | None) -> Path:
    """The Python of an environment where OpenRLHF runs on a CPU.

    Raises:
        SpecError: there is none; says how to make it.
    """
    named = given or (Path(engine.python).expanduser() if engine.cpu and engine.python else None)
    if named is not None:
        if shutil.which(named) is None:
            raise SpecError(
                f"there is no interpreter at {named}; `cascade rehearse --install` makes one that has OpenRLHF"
            )
        if not openrlhf_engine.version(str(named)):
            raise SpecError(
                f"OpenRLHF is not installed in the environment of {named}; `cascade rehearse --install` makes one"
            )
        return named
    if not rehearsal.is_installed(rehearsal.place()):
        raise SpecError(
            f"OpenRLHF for a CPU is not installed in {rehearsal.place()}; `cascade rehearse --install` puts it there"
            " (minutes, 3 GB), --python names another environment, --quick does without"
        )
    return rehearsal.place() / "bin" / "python"
