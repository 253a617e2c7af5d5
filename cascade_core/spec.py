"""A spec file to typed settings, and back: `load`, `check`, `dump`, `schema`.

`load` needs no plugin: YAML, `--set`, keys, types, ranges and what must fit together. `check` asks the plugins
(`objections.py`). Whatever is wrong is refused before anything starts, all of it at once, each on a line of its own:
`file:line:column: where: what was found, what is allowed`.

Text in `model` (of the spec, of a stage) and in the options of domains, resources and trackers that begins with `./` or `../`
is a path from the spec's folder (after `--set`: from the working directory). All other text is left as it is, since a hub
name looks like a path.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cascade_core import options, overrides
from cascade_core.document import Document, Where, read
from cascade_core.domain import Domain
from cascade_core.errors import PluginError, SpecError
from cascade_core.objections import objections
from cascade_core.plugins import Registry, registry
from cascade_core.refusals import Refusal, refusals
from cascade_core.settings import Spec


def load(path: Path, settings: Iterable[str] = ()) -> Spec:
    """The spec in a YAML file.

    Args:
        settings: `path=value` as after `--set`; they replace what the file says.

    Raises:
        SpecError: whatever is wrong with it, one line each.
    """
    document = _document(path, settings)
    try:
        return Spec.model_validate(document.data)
    except ValidationError as error:
        raise _refused(document, refusals(error, document.data, Spec)) from None


def check(
    spec: Spec, path: Path | None = None, settings: Iterable[str] = (), found: Registry | None = None
) -> dict[str, Domain]:
    """Asks the plugins whether they can do what the spec says; gives back the domains, built.

    Args:
        path: the spec file, so that refusals name its lines; `settings` as for `load`.
        found: the plugins to ask; the default is everything installed.

    Raises:
        SpecError: all that is wrong, one line each.
        PluginError: the spec is right, and a plugin that it needs is broken or missing.
    """
    document = _document(path, settings) if path else Document("spec", spec.model_dump(mode="json"))
    domains, wrong = objections(spec, found or registry())
    if wrong:
        raise _refused(document, wrong)
    return domains


def read_options(settings: Iterable[str], flag: str = "--option") -> dict[str, Any]:
    """The options of a domain from `name=value` as after `--option`, typed as in a spec; `flag` is what they were given after.

    Raises:
        SpecError: no `=`, or a value that is no YAML.
    """
    document = Document(flag, {})
    overrides.apply(document, settings, flag)
    found: dict[str, Any] = _absolute(document.data, Path())
    return found


def dump(spec: Spec, without: Iterable[str] = ()) -> str:
    """The spec as YAML that `load` reads back to an equal spec; what was left to its default is left out.

    Args:
        without: keys of the spec to leave out whatever they say.
    """
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 110
    out = io.StringIO()
    yaml.dump(spec.model_dump(mode="json", exclude_unset=True, exclude=set(without)), out)
    return out.getvalue()


def schema(found: Registry | None = None) -> dict[str, Any]:
    """The JSON Schema of a spec file; the options of the domains and trackers in `found` are part of it.

    The schema says what may stand where. What must fit together (names of stages, say) only `load` checks.
    """
    whole = Spec.model_json_schema(mode="validation")
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole, "title": "cascade-rl spec"}
    for kind in ("domain", "tracker"):
        known = dict(_schemas(found, kind)) if found else {}
        if known:
            whole["properties"][f"{kind}s"]["properties"] = known
    return whole


def _schemas(found: Registry, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in found.names(kind):
        with suppress(PluginError):  # two plugins offer the name: `cascade plugins` says so
            yield name, options.schema(found.find(kind, name)[0])


def _document(path: Path, settings: Iterable[str]) -> Document:
    document = read(path)
    if document.data is None:
        raise SpecError(f"{path}: empty; a spec needs at least name, model, domains and stages")
    if not isinstance(document.data, dict):
        found = "a list" if isinstance(document.data, list) else "a single value"
        raise SpecError(
            f"{document.where(())}: a spec is a mapping with name, model, domains and stages, found {found}"
        )
    _resolve(document.data, path.parent)
    overrides.apply(document, settings)
    _resolve(document.data, Path())
    return document


def _resolve(data: dict[str, Any], folder: Path) -> None:
    """Makes the paths in `model`, of the spec and of its stages, and in the options of domains, resources and trackers absolute, from `folder`."""
    for key in ("model", "domains", "resources", "trackers"):
        if key in data:
            data[key] = _absolute(data[key], folder)
    for stage in data["stages"] if isinstance(data.get("stages"), list) else ():
        if isinstance(stage, dict) and "model" in stage:
            stage["model"] = _absolute(stage["model"], folder)


def _absolute(value: Any, folder: Path) -> Any:
    if isinstance(value, str) and value.startswith(("./", "../")):
        return str((folder / value).resolve())
    if isinstance(value, list):
        return [_absolute(item, folder) for item in value]
    if isinstance(value, dict):
        return {key: _absolute(item, folder) for key, item in value.items()}
    return value


def _refused(document: Document, wrong: Iterable[Refusal]) -> SpecError:
    """One error for all refusals, in the order of the file, none said twice."""
    lines = {}
    for refusal in wrong:
        place = document.where(refusal.where, key=refusal.is_key)
        dotted = _dotted(document.data, refusal.where)
        lines[f"{place}: {dotted}{': ' if dotted else ''}{refusal.what}"] = _position(place)
    return SpecError("\n".join(sorted(lines, key=lambda line: lines[line])))


def _position(place: str) -> tuple[int, int]:
    match = re.search(r":(\d+):(\d+)$", place)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _dotted(data: Any, where: Where) -> str:
    """`stages.math.rollout.top_p`: a stage goes by its name where it has one, else by its number from 1."""
    parts = []
    for step in where:
        if isinstance(step, int):
            item = data[step] if isinstance(data, list) and step < len(data) else None
            name = item.get("name") if isinstance(item, dict) else None
            parts.append(name if isinstance(name, str) else str(step + 1))
        else:
            parts.append(step)
        inside = isinstance(data, list | dict) and not (isinstance(data, dict) and step not in data)
        data = data[step] if inside else None
    return ".".join(parts)
