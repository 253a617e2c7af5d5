"""The reward service: the scorer of `cascade score` behind HTTP, for trainers that are other processes.

    wire.py      JSON of strangers: bytes to values, rows and refusals that name the field
    reward.py    the shape of OpenRLHF's reward servers
    index.py     prompts files: answers and hidden tests that stay here
    kept.py      finished answers, with bounds of number, age and bytes
    inflight.py  requests that are the same one: joined while it runs, answered again afterwards
    desk.py      rows to verdicts: how many may wait, what is counted
    groups.py    whole groups to finished advantages, alone or once their batch is complete
    rollout.py   the steps of a stage whose samples come one by one from an engine
    conversation.py  what the environment says in the conversations of a stage
    journal.py   what a service that is started again must know of its stage
    handing.py   judged rows as numbers that an engine leaves alone
    schema.py    what is taken and answered, as OpenAPI
    watch.py     says which domain and task hang
    metrics.py   numbers for Prometheus
    access.py    who may ask
    answering.py a handler as an endpoint: size limits, refusals, what went wrong
    app.py       the endpoints
    listen.py    the socket, the start and the end of the process
    staged.py    the service of one stage, as a process of its own
    needed.py    whether what all this stands on is installed

Verdicts, limits and processes are `scoring.py`'s, advantages `judge.py`'s: a row gets the same verdict here as anywhere. Nothing is
kept over a restart but what `rollout.py` writes into the stage's folder. Starlette, uvicorn and prometheus_client are
imported here and nowhere else.
"""
