"""The steps of a stage over HTTP: tasks by slots, samples to advantages, one recorded verdict each, whoever is killed."""

import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from echoed import wait_until
from faulty import ref
from serving import EXTENSION, Program, served

from cascade_core.advantages import advantages, grid
from cascade_core.errors import RunError
from cascade_core.initial import make
from cascade_core.judge import Judge
from cascade_core.rows import read, write
from cascade_core.serve.journal import Journal
from cascade_core.serve.rollout import Rollouts
from cascade_core.serve.staged import TOKEN, main
from cascade_core.settings import InitModel, Stage
from cascade_core.template import Prompt

SLOTS, SAMPLES, STEPS = 3, 2, 4
STAGE = {
    "name": "s",
    "domains": {"faulty": 1.0},
    "steps": STEPS,
    "rollout": {"prompts_per_step": SLOTS, "samples_per_prompt": SAMPLES, "temperature": 0.7, "max_response_tokens": 9},
}


def tasks():
    return [
        {"domain": "faulty", "id": f"t{n}", "prompt": f"question {n}", "answer": "right", "mode": "", "source": "s"}
        for n in range(SLOTS * STEPS)
    ]


def rollouts(folder, start=0, attempt="a", patience=60.0, **stage):
    """What makes the rollouts of the stage once there is a scorer."""
    settings = Stage.model_validate({**STAGE, **stage})

    def made(scorer):
        return Rollouts(
            settings,
            tasks(),
            Judge(scorer, settings, 0, folder, 0.02),
            Journal(folder, attempt, start),
            lambda row: Prompt(f"<{row['prompt']}>", "", [1, 2]),
            patience,
            lambda line: None,
        )

    return made


def sample(served, group, index, response="right", **more):
    body = {"group": group, "index": index, "response": response, "truncated": False, "tokens": 3}
    return served.post("/sample", {**body, **more})


def draw(served, step, slots=range(SLOTS)):
    """Group names of a step, after each asked for its slot."""
    names = [f"{step}/{slot}" for slot in slots]
    for slot, name in zip(slots, names, strict=True):
        status, told = served.post("/slot", {"slot": slot, "group": name})
        assert (status, told["step"], told["slot"]) == (200, step, slot)
    return names


def step(served, names, responses=("right", "wrong")):
    """All samples of a step, sent at once; the answers by group and index."""
    wanted = [(name, index) for name in names for index in range(SAMPLES)]
    with ThreadPoolExecutor(len(wanted)) as pool:
        found = pool.map(lambda one: sample(served, one[0], one[1], responses[one[1]]), wanted)
        return dict(zip(wanted, found, strict=True))


def test_what_comes_again_is_not_heard_again(tmp_path):
    made = []

    def kept(scorer):
        made.append(rollouts(tmp_path)(scorer))
        return made[0]

    with served(rollouts=kept) as service:
        names = draw(service, 0)
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(sample, service, names[0], 0) for _ in range(2)]
            wait_until(lambda: made[0].heard == 1)
            assert sample(service, names[0], 0, "something else")[0] == 409
            step(service, names, ("right", "right"))
            assert [one.result()[0] for one in both] == [200, 200]
        assert sample(service, names[0], 0)[0] == 200
        assert made[0].heard == SLOTS * SAMPLES


def test_a_slot_gives_the_task_of_its_step_and_no_answer(tmp_path):
    with served(rollouts=rollouts(tmp_path)) as service:
        status, told = service.post("/slot", {"slot": 1, "group": "g"})
        assert status == 200
        assert told == {
            "step": 0,
            "slot": 1,
            "samples": SAMPLES,
            "domain": "faulty",
            "id": "t1",
            "mode": "",
            "prompt": "<question 1>",
            "prefill": "",
            "ids": [1, 2],
            "sampling": {"temperature": 0.7, "top_p": 1.0, "top_k": 0, "max_tokens": 9},
        }
        assert service.post("/slot", {"slot": 1, "group": "g"})[1] == told
        assert service.post("/slot", {"slot": 1, "group": "h"})[1]["id"] == f"t{SLOTS + 1}"
        assert service.post("/slot", {"slot": 2, "group": "g"})[0] == 409
        assert service.post("/slot", {"slot": SLOTS, "group": "x"})[1]["field"] == "body.slot"
        for name in ("3", "4"):
            service.post("/slot", {"slot": 1, "group": name})
        status, told = service.post("/slot", {"slot": 1, "group": "5"})
        assert status == 409 and "all 4 steps" in told["error"]


def test_a_step_is_answered_when_it_is_whole_and_is_the_file_that_the_judge_writes(tmp_path):
    with served(rollouts=rollouts(tmp_path)) as service:
        names = draw(service, 0)
        told = step(service, names)
        rows = list(read(tmp_path / "rollouts/step-00000.jsonl"))
        assert [(one["id"], one["sample"], one["group"]) for one in rows] == [
            (f"t{slot}", index, f"0-{slot}") for slot in range(SLOTS) for index in range(SAMPLES)
        ]
        assert [one["advantage"] for one in rows] == advantages([1.0, 0.0]) * SLOTS
        for (_, index), (status, answer) in told.items():
            assert status == 200
            assert answer["reward"] == grid(advantages([1.0, 0.0]))[index]
            assert (answer["scores"], answer["masked"]) == (1.0 - index, "")
            assert answer["extra_logs"]["cascade_reward"] == 1.0 - index
        stage = service.get("/stage")[1]
        assert [one["step"] for one in stage["done"]] == [0] and stage["done"][0]["metrics"]["total"] == 6
        assert service.get("/stage?after=0")[1]["done"] == []


def test_a_sample_waits_for_its_step_and_one_that_is_sent_again_is_the_same(tmp_path):
    with served(rollouts=rollouts(tmp_path), log=tmp_path / "log") as service:
        names = draw(service, 0)
        early: list = []
        asked = [threading.Thread(target=lambda: early.append(sample(service, names[0], 0))) for _ in range(2)]
        for one in asked:
            one.start()
        wait_until(lambda: service.get("/stage")[1]["waiting"] == {"0": {"samples": 1, "of": 6}})
        assert sample(service, names[0], 0, "wrong")[0] == 409
        log = tmp_path / "log"
        wait_until(lambda: log.exists() and "score t0" in log.read_text())  # judged while the others are being sampled
        told = step(service, names)
        for one in asked:
            one.join()
        assert early[0] == early[1] == told[names[0], 0] == sample(service, names[0], 0)
        assert (tmp_path / "log").read_text().count("score t0") == SAMPLES


def test_a_sample_that_its_engine_gives_up_is_masked_and_counted_and_holds_nobody_up(tmp_path):
    with served(rollouts=rollouts(tmp_path)) as service:
        names = draw(service, 0)
        lost: list = []
        gone = {"group": names[0], "index": 0, "gave_up": "out of memory"}
        asked = threading.Thread(target=lambda: lost.append(service.post("/sample", gone)))
        asked.start()
        wait_until(lambda: service.get("/stage")[1]["waiting"]["0"]["samples"] == 1)
        told = step(service, names)  # the response that comes after all is too late
        asked.join()
        assert lost[0] == told[names[0], 0]
        answer = lost[0][1]
        assert (answer["reward"], answer["masked"]) == (0.0, "error") and answer["error"]
        assert told[names[0], 1][1]["reward"] == 0.0  # alone in its group
        assert set(answer["extra_logs"]) == set(told[names[1], 0][1]["extra_logs"])
        (row, *_) = read(tmp_path / "rollouts/step-00000.jsonl")
        assert (row["gave_up"], row["reward"]) == ("out of memory", None)


def test_a_step_of_which_nothing_comes_any_more_is_completed_without_what_is_missing(tmp_path):
    with served(rollouts=rollouts(tmp_path, patience=2.0)) as service:
        names = draw(service, 0, [0])
        status, told = sample(service, names[0], 1)
        assert (status, told["masked"]) == (200, "")
        assert service.get("/stage")[1]["done"][0]["metrics"]["failed"] == SLOTS * SAMPLES - 1
        assert sample(service, names[0], 0)[1]["masked"] == "error"  # late: its verdict is recorded


def test_a_slot_that_is_visited_after_its_step_was_completed_without_it_opens_nothing(tmp_path):
    with served(rollouts=rollouts(tmp_path, patience=0.5)) as service:
        (first,) = draw(service, 0, [0])
        told = sample(service, first, 0)
        late = draw(service, 0, [1, 2])
        assert service.get("/stage")[1]["waiting"] == {}
        assert sample(service, late[0], 0)[1]["masked"] == "error" and sample(service, first, 0) == told


def test_a_stage_in_which_too_much_cannot_be_judged_stops_and_says_why(tmp_path):
    more = {"rollout": {"prompts_per_step": SLOTS, "samples_per_prompt": 8}, "steps": 2}
    for _ in range(2):  # the same attempt does not go on when it is started again
        with served(rollouts=rollouts(tmp_path, **more)) as service:
            names = [f"g{slot}" for slot in range(SLOTS)]
            for slot, name in enumerate(names):
                service.post("/slot", {"slot": slot, "group": name})
            wanted = [(name, index) for name in names for index in range(8)]
            with ThreadPoolExecutor(len(wanted)) as pool:
                found = list(pool.map(lambda one, at=service: sample(at, *one, "task"), wanted))
            assert {status for status, _ in found} == {409}
            assert "24 of the last 24 samples of domain 'faulty' could not be judged" in found[0][1]["error"]
            assert service.get("/stage")[1]["stopped"] == found[0][1]["error"]
            assert service.get("/health")[1]["status"] == "stopped"
            assert service.post("/slot", {"slot": 0, "group": "more"}) == (409, {"error": found[0][1]["error"]})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"group": "none", "index": 0}, "body.group"),
        ({"group": "0/0", "index": SAMPLES}, "body.index"),
        ({"group": "0/0", "index": 0, "truncated": False, "tokens": 1}, "body.response"),
        ({"group": "0/0", "index": 0, "response": "r", "tokens": 1}, "body.truncated"),
        ({"group": "0/0", "index": 0, "response": "r", "truncated": False, "tokens": True}, "body.tokens"),
        ({"group": "0/0", "index": 0, "gave_up": ""}, "body.gave_up"),
        ({"group": "0/0", "index": 0, "reward": 1.0}, "body.reward"),
    ],
)
def test_a_sample_that_is_none_is_refused_by_field(tmp_path, body, field):
    with served(rollouts=rollouts(tmp_path)) as service:
        draw(service, 0)
        status, told = service.post("/sample", body)
        assert (status, told["field"]) == (422, field)


def test_a_service_that_is_started_again_goes_on_and_another_attempt_begins_at_its_own_step(tmp_path):
    told = {}
    for number in range(3):
        with served(rollouts=rollouts(tmp_path)) as service:
            for earlier in range(number):  # sent again: the recorded verdict
                assert sample(service, f"{earlier}/0", 1, "wrong") == told[earlier][f"{earlier}/0", 1]
            told[number] = step(service, draw(service, number))
    with (tmp_path / "service.jsonl").open("ab") as journal:
        journal.write(b'{"group": "cut sho')
    Journal(tmp_path, "a", 0).close()
    with served(rollouts=rollouts(tmp_path, start=1, attempt="b")) as service:
        assert sorted(path.name for path in (tmp_path / "rollouts").iterdir()) == ["step-00000.jsonl"]
        assert sample(service, "1/0", 1)[0] == 422
        assert service.post("/slot", {"slot": 0, "group": "new"})[1]["step"] == 1
    with pytest.raises(RunError, match="attempt 'b' began at step 1, not at 2"):
        Journal(tmp_path, "b", 2)


def test_a_full_disk_stops_the_stage_and_not_the_service(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "step-00000.jsonl.part")

    monkeypatch.setattr("cascade_core.judge.write", full)
    with served(rollouts=rollouts(tmp_path)) as service:
        told = step(service, draw(service, 0))
        assert {status for status, _ in told.values()} == {409}
        assert "No space left on device" in service.get("/stage")[1]["stopped"]
        assert service.get("/health")[0] == 200


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "m"
    make(InitModel.model_validate({"hidden_size": 16, "layers": 1, "heads": 2}), 0, folder)
    return folder


def staged(folder, model, log):
    """The settings file of the stage's service."""
    write(folder / "prompts.jsonl", tasks())
    reference = ref(log=str(log))
    settings = {
        "stage": STAGE,
        "seed": 0,
        "folder": str(folder),
        "prompts": str(folder / "prompts.jsonl"),
        "model": str(model),
        "attempt": "a",
        "domains": {"faulty": reference.__dict__},
        "scoring": {"workers": 1},
    }
    path = folder / "settings.json"
    path.write_text(json.dumps(settings))
    return Program("-m", "cascade_core.serve.staged", str(path), PYTHONPATH=EXTENSION, **{TOKEN: ""})


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "cascade: usage: python -m cascade_core.serve.staged SETTINGS.json\n"),
        (["absent.json"], "cascade: absent.json: no such file or directory\n"),
        (["empty.json"], "cascade: empty.json: stage.steps: field required\n"),
    ],
)
def test_a_service_of_a_stage_that_cannot_begin_says_why_in_one_line(tmp_path, monkeypatch, capsys, arguments, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.json").write_text('{"stage": {"name": "s", "domains": {"s": 1}}}')
    assert main(arguments, {}) == 2 and capsys.readouterr().err == told


def patient(program, body):
    """A sample that is sent until it is answered, to whichever service there is."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            found = httpx2.post(f"{program[0].served.url}/sample", json=body, timeout=20)
        except httpx2.HTTPError:
            time.sleep(0.05)
            continue
        if found.status_code == 200:
            return found.json()
        assert found.status_code == 503, found.text
        time.sleep(0.05)
    raise AssertionError("never answered")


@pytest.mark.drill
def test_a_service_that_is_killed_in_a_step_loses_no_sample_and_judges_no_step_twice(tmp_path, model):
    program = [staged(tmp_path, model, tmp_path / "log")]
    step(program[0].served, draw(program[0].served, 0))
    names = draw(program[0].served, 1)
    bodies = [
        {"group": name, "index": index, "response": "right", "truncated": False, "tokens": 2}
        for name in names
        for index in range(SAMPLES)
    ]
    with ThreadPoolExecutor(len(bodies)) as pool:
        waiting = [pool.submit(patient, program, body) for body in bodies[:-1]]
        wait_until(lambda: program[0].served.get("/stage")[1]["waiting"]["1"]["samples"] == len(bodies) - 1)
        program[0].process.kill()
        assert program[0].end() == -signal.SIGKILL
        program[0] = staged(tmp_path, model, tmp_path / "log")
        waiting.append(pool.submit(patient, program, bodies[-1]))
        answers = [one.result() for one in waiting]
    assert [answer["scores"] for answer in answers] == [1.0] * len(bodies)
    for number in (0, 1):
        rows = list(read(tmp_path / "rollouts" / f"step-{number:05d}.jsonl"))
        assert len({(row["group"], row["sample"]) for row in rows}) == len(rows) == len(bodies)
    assert (tmp_path / "log").read_text().count("score t0\n") == SAMPLES
    assert step(program[0].served, ["0/0", "0/1", "0/2"])["0/0", 1][1]["scores"] == 0.0
    program[0].process.terminate()
    assert program[0].end() == 0
