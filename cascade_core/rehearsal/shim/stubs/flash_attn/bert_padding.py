"""The names that OpenRLHF imports from here; none can be used."""

from typing import Any, NoReturn


def _absent(*_args: Any, **_named: Any) -> NoReturn:
    raise NotImplementedError(
        "there is no flash attention on a CPU: neither packed samples nor ring attention can be used"
    )


index_first_axis = pad_input = rearrange = unpad_input = _absent
