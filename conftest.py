"""What holds for all tests: which examples hypothesis draws, and that Ctrl-C reaches what they start.

Without a profile hypothesis draws the same 100 examples for a property on every machine, and no clock decides: a test that
fails fails again. New examples are what `--hypothesis-profile=deep` is for, a fuzzing run. Properties that fuzz for crashes and
time draw a multiple of what the profile says; so that one makes them longer too.
"""

import signal

from hypothesis import HealthCheck, settings

# Where the tests run in the background, as under `nohup`, these are ignored, and every process that they start inherits that.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

settings.register_profile(
    "deep", max_examples=5_000, deadline=None, derandomize=False, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "same",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same")
