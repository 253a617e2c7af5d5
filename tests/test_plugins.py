"""Plugins of strangers: found one at a time, each way of being broken told apart, nobody else harmed."""

import json
import sys
from importlib.metadata import EntryPoint
from textwrap import dedent

import pytest
from strangers import publish

from cascade_core.domain import DomainRef
from cascade_core.errors import PluginBroken, PluginConflict, PluginNotFound, SpecError
from cascade_core.plugins import Plugin, Registry

__all__ = ["publish"]

GOOD = """
    from dataclasses import dataclass
    from cascade_core import Domain, Score, hookimpl

    @dataclass
    class Mine(Domain):
        name = "{name}"
        size: int = 3
        def tasks(self, split, seed): return ()
        def score(self, task, response): return Score(1.0)

    @hookimpl
    def cascade_domains():
        return [Mine]
"""


def good(name: str) -> str:
    return GOOD.replace("{name}", name)


def named(registry: Registry, dist: str) -> Plugin:
    return next(plugin for plugin in registry.plugins if plugin.distribution == dist)


def test_a_strangers_domain_is_found_with_its_distribution_and_version(publish) -> None:
    publish("cascade-plugin-mine", good("mine"), version="2.5")
    registry = Registry()
    cls, plugin = registry.find("domain", "mine")
    assert (cls.name, plugin.distribution, plugin.version) == ("mine", "cascade-plugin-mine", "2.5")
    assert plugin.offers == {"domain": ("mine",)}


def test_the_built_in_trainer_is_found_through_its_entry_point() -> None:
    assert Registry().find("trainer", "trl")[1].distribution == "cascade-rl"


HOOK = "from cascade_core import Domain, Score, hookimpl\n@hookimpl\ndef cascade_domains():\n    "
BROKEN = {
    "import": ("raise ValueError('no licence')", "ValueError: no licence"),
    "missing-dependency": ("import a_module_that_nobody_has", "ModuleNotFoundError: No module named"),
    "syntax": ("def (:", "SyntaxError"),
    "exit": ("raise SystemExit('bye')", "SystemExit: bye"),
    "exit-silently": ("import sys; sys.exit()", "SystemExit"),
    "base": ("class Odd(BaseException): pass\nraise Odd('odd')", "Odd: odd"),
    "unprintable": (
        "class Odd(Exception):\n    def __str__(self): raise RuntimeError\nraise Odd",
        "Odd: (its message cannot be shown)",
    ),
    "misspelt-hook": (
        "from cascade_core import hookimpl\n@hookimpl\ndef cascade_domain(): return []",
        "'cascade_domain' is marked as a hook, and there is none of that name, did you mean 'cascade_domains'",
    ),
    "optional-misspelt": (
        "from cascade_core import hookimpl\n@hookimpl(optionalhook=True)\ndef cascade_domainz(): return []",
        "did you mean 'cascade_domains'",
    ),
    "unmarked-hook": ("def cascade_domains(): return []", "cascade_domains is not marked: put @hookimpl"),
    "strange-marker": (
        "import pluggy\n@pluggy.HookimplMarker('pytest')\ndef cascade_domains(): return []",
        "cascade_domains is not marked",
    ),
    "no-hook": ("x = 1", "it implements none of the hooks"),
    "forgotten-return": (HOOK + "[Domain]", "cascade_domains returned None: a return statement is missing"),
    "bare-class": (HOOK + "return Domain", "cascade_domains must return a list of domain classes"),
    "text": (HOOK + "return 'mine'", "cascade_domains must return a list of domain classes"),
    "number": (HOOK + "return 7", "cascade_domains must return a list of domain classes"),
    "instances": (HOOK + "return [Score(1.0)]", "cascade_domains must return classes derived from Domain"),
    "stranger-class": (HOOK + "return [int]", "cascade_domains must return classes derived from Domain"),
    "abstract": (HOOK + "return [Domain]", "domain class Domain is abstract: it lacks score, tasks"),
    "hook-raises": (HOOK + "raise KeyError('x')", "KeyError"),
    "hook-wants-argument": (
        "from cascade_core import hookimpl\n@hookimpl\ndef cascade_domains(config): return []",
        "PluginValidationError",
    ),
    "wrapper": (
        "from cascade_core import hookimpl\n@hookimpl(wrapper=True)\ndef cascade_domains():\n    return (yield)",
        "cascade_domains must be an ordinary function, found a wrapper",
    ),
    "commands-list": (
        "from cascade_core import hookimpl\n@hookimpl\ndef cascade_commands(): return ['rm']",
        "cascade_commands must return a mapping of names to functions",
    ),
    "commands-value": (
        "from cascade_core import hookimpl\n@hookimpl\ndef cascade_commands(): return {'rm': 3}",
        "'rm' must be a function that builds a typer app",
    ),
    "command-name": (
        "from cascade_core import hookimpl\n@hookimpl\ndef cascade_commands(): return {'--rm': dict}",
        "must have a name of letters",
    ),
    "no-name": (good("mine").replace('name = "mine"', ""), "domain Mine must have a name of letters"),
    "path-name": (good("../../etc"), "domain Mine must have a name of letters"),
    "twice": (good("mine").replace("[Mine]", "[Mine, Mine]"), "cascade_domains returned two classes called 'mine'"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plugin_is_kept_with_its_cause_and_harms_no_other(kind: str, publish) -> None:
    source, cause = BROKEN[kind]
    publish("cascade-plugin-bad", source)
    publish("cascade-plugin-fine", good("fine"))
    registry = Registry()
    plugin = named(registry, "cascade-plugin-bad")
    assert cause in plugin.error and "\n" not in plugin.error
    assert plugin.trace and not plugin.offers
    assert registry.domain("fine").name == "fine"
    with pytest.raises(PluginBroken, match=r"'bad' could not be loaded: cascade-plugin-bad 1\.0 \(entry point 'bad'\)"):
        registry.domain("bad")


def test_an_interrupted_import_ends_the_program_and_is_not_taken_for_a_broken_plugin(publish) -> None:
    publish("cascade-plugin-bad", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        Registry()


def test_the_entry_point_of_a_deleted_package_names_the_way_out(publish) -> None:
    site = publish("cascade-plugin-gone", "")
    (site / "cascade_plugin_gone.py").unlink()
    assert "pip uninstall cascade-plugin-gone" in named(Registry(), "cascade-plugin-gone").error


def test_a_missing_dependency_is_not_taken_for_a_deleted_package(publish) -> None:
    publish("cascade-plugin-bad", "import a_module_that_nobody_has")
    assert "pip uninstall" not in named(Registry(), "cascade-plugin-bad").error


@pytest.mark.parametrize("value", ["no_such:thing:else", "cascade_plugin_bad:absent", "cascade_plugin_bad:x", "!!", ""])
def test_an_entry_point_that_names_nothing_usable_is_a_broken_plugin(value: str, publish) -> None:
    publish("cascade-plugin-bad", "x = 1", entries=f"[cascade_core]\nbad = {value}\n")
    publish("cascade-plugin-fine", good("fine"))
    registry = Registry()
    assert named(registry, "cascade-plugin-bad").error
    assert registry.domain("fine")


@pytest.mark.parametrize(
    "entries", ["[cascade_core]\nno equals sign here\n", "cascade_core\n", "[cascade_core\nx = y\n"]
)
def test_a_damaged_list_of_entry_points_does_not_take_the_others_with_it(entries: str, publish) -> None:
    publish("cascade-plugin-torn", "", entries=entries)
    publish("cascade-plugin-fine", good("fine"))
    assert Registry().domain("fine")


def test_a_distribution_without_metadata_does_not_take_the_others_with_it(publish) -> None:
    site = publish("cascade-plugin-fine", good("fine"))
    torn = site / "torn-1.0.dist-info"
    torn.mkdir()
    (torn / "entry_points.txt").write_text("[cascade_core]\ntorn = torn\n")
    registry = Registry()
    assert registry.domain("fine")
    assert [plugin.entry for plugin in registry.plugins if "torn" in plugin.module] == ["torn"]


def test_two_distributions_that_offer_one_name_are_an_error_that_names_both(publish) -> None:
    publish("cascade-plugin-one", good("same"))
    publish("cascade-plugin-two", good("same"), version="3.1")
    publish("cascade-plugin-fine", good("fine"))
    registry = Registry()
    with pytest.raises(PluginConflict) as caught:
        registry.build(DomainRef("same"))
    assert "cascade-plugin-one 1.0" in str(caught.value) and "cascade-plugin-two 3.1" in str(caught.value)
    assert registry.domain("fine") and "same" in registry.names("domain")


def test_a_domain_and_a_command_may_share_a_name(publish) -> None:
    publish(
        "cascade-plugin-mine",
        dedent(good("mine")) + "@hookimpl\ndef cascade_commands():\n    return {'mine': dict}\n",
    )
    registry = Registry()
    assert registry.domain("mine") and registry.find("command", "mine")[0] is dict


def test_a_second_copy_of_a_distribution_further_down_the_path_is_not_a_conflict(
    publish, tmp_path, monkeypatch
) -> None:
    publish("cascade-plugin-mine", good("mine"))
    other = tmp_path / "other" / "cascade_plugin_mine-0.9.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: Cascade_Plugin.mine\nVersion: 0.9\n")
    (other / "entry_points.txt").write_text("[cascade_core]\nmine = cascade_plugin_mine\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(other.parent)])
    assert Registry().find("domain", "mine")[1].version == "1.0"


def test_a_misspelt_name_is_answered_with_the_nearest(publish) -> None:
    publish("cascade-plugin-mine", good("arithmetic"))
    with pytest.raises(
        PluginNotFound, match=r"no domain is called 'arithmatic', did you mean 'arithmetic' \(installed:"
    ):
        Registry().domain("arithmatic")


def test_a_missing_domain_of_ours_is_answered_with_the_command_that_installs_it_and_a_strangers_is_not() -> None:
    registry = Registry([])
    with pytest.raises(PluginNotFound, match=r"pip install 'cascade-rl\[math\]'"):
        registry.domain("math")
    with pytest.raises(PluginNotFound) as caught:
        registry.domain("maths-by-a-stranger")
    assert "pip" not in str(caught.value)


def test_a_missing_name_is_answered_with_the_broken_plugins_that_might_have_it(publish) -> None:
    publish("cascade-plugin-bad", "raise ValueError('no licence')")
    with pytest.raises(PluginNotFound, match=r"cascade-plugin-bad 1\.0 .* is broken: ValueError: no licence"):
        Registry().domain("other")


def test_what_a_plugin_prints_while_it_loads_does_not_reach_standard_output(publish, capsys) -> None:
    publish("cascade-plugin-mine", "print('hello')\n" + dedent(good("mine")))
    Registry()
    seen = capsys.readouterr()
    assert seen.out == "" and seen.err == "hello\n"


def test_entry_points_are_loaded_in_name_order(publish) -> None:
    for name in ("zeta", "alpha", "mu"):
        publish(f"cascade-plugin-{name}", good(name))
    entries = [plugin.entry for plugin in Registry().plugins]
    assert entries == sorted(entries)


def test_a_hook_may_have_arguments_with_defaults_and_return_a_generator(publish) -> None:
    publish(
        "cascade-plugin-mine",
        good("mine").replace("cascade_domains():", "cascade_domains(extra=1):").replace("return [Mine]", "yield Mine"),
    )
    assert Registry().domain("mine")


def test_a_domain_made_elsewhere_with_another_version_is_refused(publish) -> None:
    publish("cascade-plugin-mine", good("mine"), version="1.0")
    registry = Registry()
    ref = registry.reference("mine", {"size": 4})
    assert registry.build(ref).size == 4
    for other in (DomainRef("mine", {}, "cascade-plugin-mine", "1.1"), DomainRef("mine", {}, "another-dist", "1.0")):
        with pytest.raises(PluginBroken, match="install the same version"):
            registry.build(other)


def test_a_constructor_that_refuses_is_a_spec_error_and_one_that_fails_is_a_broken_plugin(publish) -> None:
    post = """
        def __post_init__(self):
            if self.size > 5: raise ValueError("size must be at most 5")
            if self.size < 0: raise RuntimeError("no server")
        def tasks("""
    source = good("mine").replace("\n        def tasks(", post)
    publish("cascade-plugin-mine", source)
    registry = Registry()
    with pytest.raises(SpecError, match="domain 'mine' refuses its options: size must be at most 5"):
        registry.build(DomainRef("mine", {"size": 6}))
    with pytest.raises(PluginBroken, match=r"domain 'mine' of cascade-plugin-mine .* RuntimeError: no server"):
        registry.build(DomainRef("mine", {"size": -1}))


def test_a_plugin_without_a_distribution_is_called_unknown() -> None:
    plugin = Registry([EntryPoint("x", "no_such_module", "cascade_core")]).plugins[0]
    assert (plugin.distribution, plugin.version) == ("unknown", "unknown") and plugin.error


def test_a_reference_crosses_processes_as_json(publish) -> None:
    publish("cascade-plugin-mine", good("mine"))
    registry = Registry()
    ref = registry.reference("mine", {"size": 4})
    again = DomainRef(**json.loads(json.dumps(vars(ref))))
    assert registry.build(again) == registry.build(ref)
