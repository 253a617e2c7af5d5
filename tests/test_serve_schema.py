"""The schema that the service publishes of itself; `drills/test_serve_schema.py` tries that it is true."""

import pytest
from jsonschema import Draft202012Validator
from serving import row, served

from cascade_core.serve.index import Index
from cascade_core.serve.schema import openapi


@pytest.fixture(scope="module")
def document():
    with served(workers=1) as service:
        status, told = service.get("/openapi.json")
        assert status == 200
        return told


def body(document, path):
    """What validates the body of a request."""
    schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return Draft202012Validator({**schema, "components": document["components"]})


def test_every_path_that_answers_is_in_the_schema(document):
    found = {path for path, item in document["paths"].items() for _ in item}
    assert found == {"/score", "/rewards", "/get_reward", "/domains", "/health", "/slow"}
    stage = openapi(["a"], has_tasks=False, has_stage=True, body_mib=1)["paths"]
    assert set(stage) - found == {"/slot", "/reply", "/sample", "/stage"}


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        ("/score", {"rows": [row("right")]}, {"rows": []}),
        ("/score", {"rows": [row("right", meta={})]}, {"rows": [row("right", domain="nowhere")]}),
        ("/rewards", {"rows": [row("right", tokens=1)], "settings": {"overlong": "zero"}}, {"rows": [row("right", tokens=-1)]}),
        ("/rewards", {"rows": [row("right")], "batch": {"id": "b", "groups": 2}}, {"rows": [row("r")], "settings": {"seed": 1}}),
        ("/get_reward", {"query": ["q"], "prompts": ["q"], "labels": [None]}, {"query": ["q"], "prompts": ["q"]}),
    ],
)  # fmt: skip
def test_the_schema_tells_requests_from_what_is_none(document, path, good, bad):
    check = body(document, path)
    assert check.is_valid(good) and not check.is_valid(bad)


def test_a_row_may_leave_out_what_the_service_knows():
    known, several = (
        openapi(domains, has_tasks=has, has_stage=False, body_mib=1)
        for domains, has in ((["math"], True), (["a", "b"], False))
    )
    required = [
        one["paths"]["/score"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]["rows"][
            "items"
        ]["required"]
        for one in (known, several)
    ]
    assert required == [["id", "response"], ["id", "response", "domain", "prompt"]]
    assert not Index().tasks
