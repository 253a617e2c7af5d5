"""Domains that go wrong on request: a real extension, found through its entry point in every process that scores."""

from cascade_core import hookimpl
from cascade_plugin_faulty.domains import Batchwise, Faulty, Grouped, Shut, Stillborn
from cascade_plugin_faulty.tidy import Tidy


@hookimpl
def cascade_domains():
    return [Faulty, Grouped, Batchwise, Shut, Stillborn, Tidy]
