"""Traces with personal data and secrets to traces without: redaction, and keyed pseudonyms for people."""

from seatrial.privacy.patterns import TYPES
from seatrial.privacy.pseudonyms import Pseudonyms
from seatrial.privacy.redaction import VERSION, Redactor, mask_home, redact, redact_text

__all__ = ["TYPES", "VERSION", "Pseudonyms", "Redactor", "mask_home", "redact", "redact_text"]
