"""How many examples hypothesis draws: its own 100 for a property by default, and with `--hypothesis-profile=deep` a fuzzing run.

Properties that fuzz for crashes and time draw a multiple of what the profile says; so the profile makes them longer too.
"""

from hypothesis import HealthCheck, settings

settings.register_profile("deep", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
