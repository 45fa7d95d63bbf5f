"""A record or a log → findings: what happened, why, and what to do about it."""
