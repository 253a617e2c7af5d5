"""Text for references: neutral English sentences of our own, cut, lengthened and joined to fit an instruction."""
from __future__ import annotations
