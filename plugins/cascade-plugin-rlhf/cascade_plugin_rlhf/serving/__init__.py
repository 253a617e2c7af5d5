"""A server of reward models: `cascade rm serve`.

    model.py     a folder or hub name as a function from tokens to scores: classifiers with one label, value heads
    encoding.py  a prompt and a response as the model's tokens; what is too long is cut, and told
    batches.py   which sequences run together
    engine.py    what waits for one model, in one thread
    metrics.py   numbers for Prometheus
    app.py       the endpoints
    process.py   models to a process that serves until SIGTERM

torch and transformers are imported by `model.py` and `encoding.py` inside functions, Starlette by `app.py`.
"""
