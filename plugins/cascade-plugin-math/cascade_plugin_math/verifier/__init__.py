"""The verifier of mathematical answers: pure functions of a response, a label and a question. See `verdict.judge`."""
