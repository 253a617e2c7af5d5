"""The agent's client and what answers in place of its service: a proxy whose backend is gone is nobody."""

import asyncio

import pytest
from aiohttp import web

from cascade_core.errors import TrainerError
from cascade_core.trainers import openrlhf_client
from cascade_core.trainers.openrlhf_client import Client


def asked(handler, patience):
    """What the client is told by a server that answers like this."""

    async def main():
        application = web.Application()
        application.router.add_post("/slot", handler)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0]
        client = Client(f"http://{host}:{port}", patience=patience)
        try:
            return await client.ask("/slot", {}, lambda told: told)
        finally:
            await client.close()
            await runner.cleanup()

    return asyncio.run(main())


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_proxy_whose_backend_is_gone_ends_the_wait_after_the_patience(status):
    async def page(request):
        return web.Response(text="<html>no backend", status=status)

    with pytest.raises(TrainerError, match="did not answer for .* s: <html>no backend"):
        asked(page, patience=0.5)


def test_a_service_that_takes_its_time_is_there_whatever_was_before(monkeypatch):
    monkeypatch.setattr(openrlhf_client, "_TRY_SECONDS", 0.2)
    asked_before = []

    async def slow(request):
        asked_before.append(request)
        if len(asked_before) == 1:
            return web.Response(text="<html>no backend", status=502)
        if len(asked_before) < 6:
            await asyncio.sleep(60)
        return web.json_response({"slot": 1})

    assert asked(slow, patience=0.5) == {"slot": 1}


def test_a_service_that_says_again_and_again_that_it_has_no_room_is_there():
    said = []

    async def full(request):
        said.append(asyncio.get_running_loop().time())
        if said[-1] - said[0] < 1.0:
            return web.json_response({"error": "rows wait already"}, status=503)
        return web.json_response({"slot": 1})

    assert asked(full, patience=0.3) == {"slot": 1}
