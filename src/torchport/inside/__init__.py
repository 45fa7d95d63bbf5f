"""The only code of torchport that lives in the user's process: it needs torch and the standard library."""
