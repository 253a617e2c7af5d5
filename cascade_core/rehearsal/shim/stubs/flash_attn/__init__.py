"""Stands in for flash-attn, which needs a GPU and which OpenRLHF imports even where it is not used.

OpenRLHF's module for ring attention imports the names in `bert_padding` and `utils.distributed`; a run on a CPU calls none of
them (`--ds.attn_implementation sdpa`, no packing), and each says so if it is called after all.
"""

__version__ = "0"
