"""What commands show while they work."""

import pytest

from cascade_core.cli.output import bar


def test_there_is_no_bar_where_there_is_no_terminal_and_nothing_is_counted_for_it(capfd):
    with bar("judging", lambda: pytest.fail("it was counted")) as progress:
        progress(1)
    assert capfd.readouterr() == ("", "")


def test_the_bar_counts_on_a_terminal(monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with bar("judging", lambda: 4) as progress:
        progress(4)
    out, err = capfd.readouterr()
    assert out == ""
    assert "judging" in err
    assert "4/4" in err
