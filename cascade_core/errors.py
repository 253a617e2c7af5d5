"""Every error that cascade-rl raises, as one tree.

    CascadeError
    ├── UsageError (ValueError)            the caller asked for something that cannot be
    │   ├── SpecError                      a spec file: names the file, the line, what was found, what is allowed
    │   ├── ContractError (TypeError)      an object handed to the core breaks a contract of `domain.py`
    │   └── RowError                       a JSON row is not one of ours
    ├── PluginError                        a distribution that offers plugins
    │   ├── PluginNotFound (LookupError)   nothing installed offers that name
    │   ├── PluginBroken                   it is installed and could not be loaded, or fails its own contract
    │   └── PluginConflict                 two distributions offer one name
    ├── TaskError (ValueError)             one task is broken (bad label, bad instruction): its samples are failed, not wrong
    ├── ScoringError (RuntimeError)        scoring as a whole cannot go on
    │   └── TooManyFailures                more samples could not be judged than the run allows
    ├── ResourceError (RuntimeError)       something that domains need cannot be started, or has gone
    ├── TrainerError (RuntimeError)        a trainer could not do its stage
    └── RunError (RuntimeError)            a run folder
        ├── RunLocked                      another process is working on it
        ├── RunChanged                     the spec, a plugin or the data differ from what the run started with
        └── CheckpointError                a checkpoint is missing or damaged

Messages are one lower-case sentence without a full stop: which file or plugin, what was found, what is allowed.
"Could not be judged" is never an exception that reaches a trainer: it is `Score.error`, counted everywhere.
"""

from __future__ import annotations


class CascadeError(Exception):
    """The root of the tree: `except CascadeError` catches whatever this project raises on purpose."""


class UsageError(CascadeError, ValueError):
    """The caller asked for something that cannot be."""


class SpecError(UsageError):
    """A spec file is wrong; the message starts with `file:line:`."""


class ContractError(UsageError, TypeError):
    """An object handed to the core breaks a contract of `cascade_core.domain`."""


class RowError(UsageError):
    """A JSON row lacks what it must have, or carries a value of a wrong type."""


class PluginError(CascadeError):
    """Something is wrong with a distribution that offers plugins."""


class PluginNotFound(PluginError, LookupError):
    """Nothing that is installed offers the name."""


class PluginBroken(PluginError):
    """The plugin is installed, and could not be loaded or breaks its own contract."""


class PluginConflict(PluginError):
    """Two distributions offer the same name."""


class TaskError(CascadeError, ValueError):
    """One task is broken: raised by `Domain.score`, it becomes `Score.error` and never a wrong answer."""


class ScoringError(CascadeError, RuntimeError):
    """Scoring as a whole cannot go on."""


class TooManyFailures(ScoringError):
    """More samples could not be judged than `max_error_rate` allows."""


class ResourceError(CascadeError, RuntimeError):
    """Something that domains need (a sandbox, a reward model) cannot be started, or has gone."""


class TrainerError(CascadeError, RuntimeError):
    """A trainer could not do its stage."""


class RunError(CascadeError, RuntimeError):
    """A run folder cannot be worked on."""


class RunLocked(RunError):
    """Another process is working on the run folder."""


class RunChanged(RunError):
    """The spec, a plugin or the data differ from what the run was started with."""


class CheckpointError(RunError):
    """A checkpoint that a stage must start from is missing or damaged."""
