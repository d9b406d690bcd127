"""Read a model's answer: text in, geometry in original upright pixels out, never an exception."""

from transforms.parse.answer import ANSWER_FORMATS, parse_answer

__all__ = ["ANSWER_FORMATS", "parse_answer"]
