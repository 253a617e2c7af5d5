"""A stage as a job on a Ray cluster that runs already, which judges its responses too: submitted, killed with its run, and gone on with, by the real Ray."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from importlib.metadata import distribution
from pathlib import Path

import cascade_plugin_if
import pluggy
import pytest
from openrlhf_runs import command, finished

import cascade_core
from cascade_core.trainers.openrlhf_job import Running

SPEC = """
name: there
seed: 1
trainer: openrlhf
engine: {{python: {python}, cpu: true, ray: "{ray}", stall_seconds: 600}}
model:
  init:
    hidden_size: 128
    layers: 2
    heads: 4
    context: 256
    tokenizer: {{phrases: ["Write ", " that mentions "]}}
domains:
  if: {{generator: {{level: easy, families: [detectable_format], constraints: [1, 1]}}, eval_limit: 20, eval_samples: 1}}
stages:
  - name: if
    domains: if
    steps: 5
    save_every: 2
    micro_batch: 8
    rollout: {{prompts_per_step: 8, samples_per_prompt: 4, max_response_tokens: 16}}
    optim: {{lr: 3e-4}}
    overlong: keep
evaluation: {{benchmarks: []}}
scoring: {{workers: {{ray: {{address: "{head}", per_node: 2}}}}}}
"""


def free_ports(count):
    """Ports that nobody had a moment ago."""
    channels = [socket.socket() for _ in range(count)]
    for channel in channels:
        channel.bind(("127.0.0.1", 0))
    ports = [channel.getsockname()[1] for channel in channels]
    for channel in channels:
        channel.close()
    return ports


class Ray:
    """The cluster's own word on its jobs and actors; `head` is where it is joined."""

    def __init__(self, address, head):
        self.address, self.head = address, head

    def shown(self):
        """All that Ray tells of its jobs, as it tells it."""
        with urllib.request.urlopen(f"{self.address}/api/jobs/", timeout=30) as answer:
            return answer.read().decode()

    def jobs(self):
        """The jobs of stages, the oldest first: status by name."""
        found = [job for job in json.loads(self.shown()) if (job["submission_id"] or "").startswith("cascade-")]
        found = [job for job in found if "-sweep-" not in job["submission_id"]]
        return {job["submission_id"]: job["status"] for job in sorted(found, key=lambda job: job["start_time"])}

    def couriers(self):
        """The state of each actor that judges, of whatever run."""
        with urllib.request.urlopen(f"{self.address}/api/v0/actors?limit=1000", timeout=30) as answer:
            found = json.load(answer)["data"]["result"]["result"]
        return [actor["state"] for actor in found if actor["class_name"] == "Courier"]


def lent(folder):
    """A folder that gives an interpreter which has none of them this project's core and plugin, and says that they are installed.

    What the plugin detects languages with is not lent: no task of the spec asks for a language, or for its capitals.
    """
    for name in ("cascade-rl", "cascade-plugin-if"):
        info = folder / f"{name.replace('-', '_')}-0.dist-info"
        info.mkdir(parents=True)
        for file in ("METADATA", "entry_points.txt"):
            (info / file).write_text(distribution(name).read_text(file) or "")
    for module in (cascade_core, cascade_plugin_if, pluggy):
        (folder / module.__name__).symlink_to(Path(module.__file__).parent)
    return str(folder)


@pytest.fixture(scope="module")
def ray(engine, tmp_path_factory):
    """A Ray of one machine, with two GPUs that are none, which knows nothing of OpenRLHF on a CPU."""
    place = tmp_path_factory.mktemp("ray")
    port, board, agent, grpc, client, metrics = free_ports(6)  # those that Ray takes by default may be another's
    short = Path(tempfile.mkdtemp(prefix="ray-"))  # sockets have short names
    words = [str(engine), "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats"]
    words += ["--port", str(port), "--dashboard-port", str(board), "--include-dashboard", "true"]
    words += ["--dashboard-agent-listen-port", str(agent), "--dashboard-agent-grpc-port", str(grpc)]
    words += ["--ray-client-server-port", str(client), "--metrics-export-port", str(metrics)]
    words += ["--num-cpus", "8", "--num-gpus", "2", "--temp-dir", str(short)]
    found = Ray(f"http://127.0.0.1:{board}", f"127.0.0.1:{port}")
    variables = {**os.environ, "PYTHONPATH": lent(place / "lent")}
    with Running(words, variables, place / "log", place / "job.json") as running:
        last = time.monotonic() + 120
        while True:
            assert running.poll() is None and time.monotonic() < last, (place / "log").read_text()[-2000:]
            try:
                found.shown()
                break
            except OSError:
                time.sleep(0.5)
        yield found


@pytest.fixture(scope="module")
def killed(engine, ray, tmp_path_factory):
    """A run that was killed in its third step, as the kernel would; what Ray said soon afterwards; and the run that went on."""
    place = tmp_path_factory.mktemp("there")
    spec, folder = place / "spec.yaml", place / "run"
    spec.write_text(SPEC.format(python=engine, ray=ray.address, head=ray.head))
    with (place / "log").open("wb") as log:
        run = subprocess.Popen(command(spec, folder), stdout=log, stderr=log)
    last = time.monotonic() + 600
    while not list(folder.glob("stages/??-if/rollouts/step-00002.jsonl")):
        assert run.poll() is None and time.monotonic() < last, (place / "log").read_text()[-3000:]
        time.sleep(0.2)
    token = next(folder.glob("stages/??-if/trainer/token")).read_text()
    shown = ray.shown() + next(folder.glob("stages/??-if/train.log")).read_text("utf-8", "replace")
    run.send_signal(signal.SIGKILL)
    run.wait()
    time.sleep(10)
    after = ray.jobs()
    return finished(spec, folder), after, token, shown


def test_the_job_of_a_run_that_is_killed_is_ended_at_once(killed):
    _, after, _, _ = killed
    assert list(after.values()) == ["STOPPED"]


def test_a_run_that_is_given_again_has_one_job_more_and_it_is_done(killed, ray):
    assert list(ray.jobs().values()) == ["STOPPED", "SUCCEEDED"]


def test_every_step_is_there_once_and_trained_with_weights_that_reach_vllm(killed):
    steps = {event["step"]: event for event in killed[0].steps("if")}
    assert sorted(steps) == list(range(5))
    # The numbers of the killed job's last step may have gone with it; those of the one that went on are all there.
    told = [event for step, event in steps.items() if step >= 2 or "grad_norm" in event]
    assert all(event["grad_norm"] < 1e3 and abs(event["vllm_kl"]) < 5e-3 for event in told)
    rows = killed[0].rollouts("if")
    assert len({(row["step"], row["group"], row["sample"]) for row in rows}) == len(rows) == 5 * 8 * 4


def test_both_runs_were_judged_by_processes_of_the_cluster_which_end_with_them(killed, ray):
    last = time.monotonic() + 60
    while set(found := ray.couriers()) != {"DEAD"} and time.monotonic() < last:
        time.sleep(0.5)
    assert len(found) >= 2 and set(found) == {"DEAD"}
    assert {row["score"].get("error") for row in killed[0].rollouts("if")} == {None}


def test_what_ray_shows_of_a_job_does_not_hold_the_services_token(killed):
    _, _, token, shown = killed
    assert len(token) == 64 and token not in shown and "CASCADE_SERVE_TOKEN_FILE" in shown


def test_the_command_that_was_submitted_is_in_the_stages_folder(killed, ray):
    words = (killed[0].stage("if") / "command.txt").read_text()
    assert words.startswith(f"ray job submit --address {ray.address} -- ") and "--ckpt.load_enable" in words
