"""Domains that go wrong on request: a real extension, found through its entry point in every process that scores.

The module itself goes wrong where the environment variable `CASCADE_PLUGIN_FAULTY` asks for it: `import` or `hook`.
"""

import os

from cascade_core import hookimpl
from cascade_plugin_faulty.domains import Batchwise, Faulty, Grouped, Shut, Stillborn
from cascade_plugin_faulty.guess import Guess
from cascade_plugin_faulty.said import Preferred, Said
from cascade_plugin_faulty.tidy import Tidy

WISH = os.environ.get("CASCADE_PLUGIN_FAULTY", "")

if WISH == "import":
    raise ImportError("it cannot be imported, as it was asked")

if WISH == "hook":

    @hookimpl
    def cascade_domain():
        return [Faulty]


@hookimpl
def cascade_domains():
    return [Faulty, Grouped, Batchwise, Shut, Stillborn, Tidy, Guess, Said, Preferred]
