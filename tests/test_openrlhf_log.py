"""Why a job ended, by logs in the form in which Ray, vLLM, torch and the system print them."""

import pytest

from cascade_core.trainers import openrlhf_log as log
from cascade_core.vllm_sampling.reasons import reason as of_evaluation

ACTOR = "\x1b[36m(RolloutRayActor pid=10704)\x1b[0m "
REMOTE = "\x1b[36m(PolicyModelActor pid=311, ip=10.0.0.7)\x1b[0m "
# As Ray 2.55 prints it: the driver's traceback first, then what the actor itself wrote.
UNBUILT = f"""\
INFO 11-30 14:00:00 launcher.py:12] starting
Traceback (most recent call last):
  File "/opt/openrlhf/lib/python3.11/site-packages/ray/_private/worker.py", line 1025, in get_objects
    raise value
ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, \x1b[36mray::RolloutRayActor.__init__()\x1b[39m (pid=10704, ip=10.0.0.2, actor_id=c7ff8a8c50b2, repr=<openrlhf.trainer.ray.vllm_engine.RolloutRayActor object at 0x7ff780edd250>)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}
{ACTOR}(EngineCore pid=5400) ERROR 11-30 14:00:00 [core.py:843] ValueError: rope_scaling 'new' is not known
{ACTOR}Exception raised in creation task: The actor died because of an error raised in its creation task, \x1b[36mray::RolloutRayActor.__init__()\x1b[39m (pid=10704, ip=10.0.0.2, actor_id=c7ff8a8c50b2, repr=<openrlhf.trainer.ray.vllm_engine.RolloutRayActor object at 0x7ff780edd250>)
{ACTOR}  File "/opt/openrlhf/lib/python3.11/site-packages/vllm/v1/engine/utils.py", line 6, in __init__
{ACTOR}RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}
"""


def reason(text: str) -> str:
    return log.reason(text.splitlines(), "python")


def test_an_engine_that_could_not_be_built_is_told_with_the_cause_that_it_only_points_at() -> None:
    assert (
        reason(UNBUILT) == "OpenRLHF's RolloutRayActor could not be built: ValueError: rope_scaling 'new' is not known"
    )


def test_without_another_cause_the_actors_own_words_are_told() -> None:
    kept = "\n".join(line for line in UNBUILT.splitlines() if "EngineCore" not in line)
    assert reason(kept).startswith("OpenRLHF's RolloutRayActor could not be built: RuntimeError: Engine core init")


def test_a_cause_that_is_known_is_told_with_its_setting() -> None:
    known = UNBUILT.replace(
        "ValueError: rope_scaling 'new' is not known", "torch.OutOfMemoryError: CUDA out of memory."
    )
    assert reason(known).startswith("a GPU ran out of memory; lower micro_batch")


def test_that_an_actor_cannot_be_built_is_seen_at_once() -> None:
    assert [log.is_fatal(line) for line in UNBUILT.splitlines()].count(True) == 1
    assert not log.is_fatal("cascade: Exception raised in creation task: said by somebody else")


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address."
            " port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
            "a port is in use: port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use;"
            " end what holds it",
        ),
        (
            f"{ACTOR}OSError: [Errno 98] Address already in use",
            "a port is in use: Errno 98] Address already in use; end",
        ),
        (f"{REMOTE}zmq.error.ZMQError: Address already in use (addr='tcp://10.0.0.7:41231')", "tcp://10.0.0.7:41231"),
    ],
)
def test_a_port_in_use_is_told_with_what_to_change(printed: str, told: str) -> None:
    found = reason(f"Traceback (most recent call last):\n{printed}\n")
    assert told in found and "engine.ray" in found and "\n" not in found


@pytest.mark.parametrize(
    "printed",
    [
        "OSError: [Errno 28] No space left on device: '/tmp/ray/session_2026-11-30/logs/worker.out'",
        f"{REMOTE}RuntimeError: [enforce fail at inline_container.cc:815] . PytorchStreamWriter failed writing file: No space left on device",
        f"{REMOTE}safetensors_rust.SafetensorError: Error while serializing: I/O error: No space left on device (os error 28)",
        "ray.exceptions.OutOfDiskError: Local disk is full",
        "OSError: [Errno 122] Disk quota exceeded",
    ],
)
def test_a_full_disk_is_told_with_the_places_and_the_setting(printed: str) -> None:
    found = reason(f"INFO 11-30 14:00:00 ppo_actor.py:1] saving\n{printed}\n")
    assert found.startswith("a disk is full; free some where the run's folder is and where Ray writes")
    assert "save_every" in found


HARMLESS = [
    "(raylet) WARNING: task or actor 12 cannot be scheduled right now. It requires {'GPU': 1.0} for placement",
    f"{REMOTE}NCCL INFO NCCL_TIMEOUT=1800 and NCCL_IB_TIMEOUT=22 set by environment",
    f"{ACTOR}No module named 'flash_attn_3', falling back to FlashAttention 2",
    f"{ACTOR}WARNING 11-30 14:00:00 [utils.py:9] OSError: [Errno 98] Address already in use: retrying with port 41232",
]


@pytest.mark.parametrize("printed", HARMLESS)
def test_a_line_that_ends_nothing_hides_no_error(printed: str) -> None:
    error = "ValueError: the tokenizer has no end token"
    assert reason(f"{printed}\nTraceback (most recent call last):\n{REMOTE}{error}\n") == error


@pytest.mark.parametrize(("printed", "told"), [(HARMLESS[0], "Ray does not find the GPUs"), (HARMLESS[3], "a port is")])
def test_what_a_job_waits_for_is_told_where_nothing_else_is(printed: str, told: str) -> None:
    assert reason(f"{printed}\nsomething else\n").startswith(told)


def test_a_known_cause_is_told_with_the_last_error_where_that_is_another() -> None:
    known = f"{REMOTE}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
    found = reason(
        f"{known}\n{REMOTE}RuntimeError: the group was left by rank 3\nray.exceptions.ActorDiedError: died\n"
    )
    assert found.startswith("a GPU ran out of memory; lower micro_batch")
    assert found.endswith("; the last error was: RuntimeError: the group was left by rank 3")
    for follows in ("", f"{REMOTE}{known}\n", "ray.exceptions.RayTaskError(OutOfMemoryError): ray::fit()\n"):
        assert "the last error" not in reason(f"{known}\n{follows}")


def test_what_a_model_writes_explains_nothing() -> None:
    sample = "INFO 11-30 14:00:00 ppo_trainer.py:300] Sample: ['No space left on device, Address already in use', 1]"
    assert reason(f"{REMOTE}{sample}\n") == ""


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("cascade: too few GPUs: the stage asks for 64 (…), and Ray at http://h:1 has 8", "lower engine.nodes or engine.gpus"),
        ("cascade: no Ray cluster can be asked at http://h:1: ConnectionError: refused; see engine.ray", "see engine.ray"),
        ("(autoscaler +1m2s) Error: No available node types can fulfill resource request {'GPU': 1.0}", "engine.nodes"),
    ],
)  # fmt: skip
def test_what_a_cluster_refuses_is_told(printed: str, told: str) -> None:
    assert told in reason(printed)


def test_a_checkpoint_that_cannot_be_read_is_told_with_what_to_go_on_from() -> None:
    printed = f"{REMOTE}RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory. This is an internal miniz error.\n"
    found = reason(
        printed + "ray.exceptions.RayTaskError(RuntimeError): ray::PolicyModelActor.init_model_from_pretrained()\n"
    )
    assert found.startswith(
        "a checkpoint is damaged (PytorchStreamReader failed reading zip archive: failed finding central directory);"
    )
    assert "`latest`" in found and found.endswith("to train the stage from its beginning")


def test_attention_heads_that_a_cpu_cannot_have_are_told_with_the_setting() -> None:
    printed = f"""{ACTOR}(Worker pid=20534) ERROR 11-30 19:42:59 [multiproc_executor.py:1055] RuntimeError: Unsupported CPU attention configuration: head_dim=16 isa=2 kv_cache_idx=0
{ACTOR}(EngineCore pid=20462) ERROR 11-30 19:42:59 [core.py:1376] RuntimeError: Worker failed with error 'Unsupported CPU attention configuration: head_dim=16 isa=2 kv_cache_idx=0', please check
vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.
"""
    for told in (reason(printed), of_evaluation(printed.splitlines(), "python")):
        assert "attention heads (Unsupported CPU attention configuration: head_dim=16)" in told
        assert "change model.init.heads or model.init.hidden_size" in told


# As gloo, vLLM 0.29 and Ray 2.55 print it when a process was ended by SIGKILL: the peers' errors, and nothing of its own.
GONE = f"""\
{ACTOR}(EngineCore pid=30244) ERROR 12-01 03:29:42 [multiproc_executor.py:314] Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.
{ACTOR}(EngineCore pid=30244) ERROR 12-01 03:29:42 [core.py:1376] RuntimeError: Executor failed.
{ACTOR}ERROR 12-01 03:29:42 [async_llm.py:819] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.
ray.exceptions.RayTaskError(RuntimeError): \x1b[36mray::PPOTrainer.fit()\x1b[39m (pid=27906, ip=10.0.0.2, actor_id=3f3f46220af0)
RuntimeError: [gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:7381. This is typically caused by a remote worker crashing.
"""


@pytest.mark.parametrize(
    "printed",
    [
        GONE,
        "\n".join(GONE.splitlines()[2:]),
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    ],
)
def test_a_process_that_was_killed_is_told_where_nothing_but_its_peers_say_anything(printed: str) -> None:
    assert reason(printed).startswith("one of its processes died without a word")
    assert "give the same command again" in reason(printed)


def test_a_program_that_was_killed_is_told_where_nothing_was_printed() -> None:
    for status in (137, -9):
        assert log.reason(["INFO all is well"], "python", status).startswith("one of its processes died without a word")
        assert log.reason(["ValueError: no"], "python", status) == "ValueError: no"
    assert log.reason(["INFO all is well"], "python", 1) == ""


def test_a_process_that_died_of_an_error_of_its_own_is_told_with_it() -> None:
    error = "ValueError: rope_scaling 'new' is not known"
    assert reason(f"{ACTOR}(EngineCore pid=5400) ERROR 12-01 03:29:42 [core.py:1376] {error}\n{GONE}") == error
