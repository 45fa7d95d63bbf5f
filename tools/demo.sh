#!/usr/bin/env bash
# The main job, on a small project: it trains well on a CPU and would stop on every GPU.
set -euo pipefail
cd "$(dirname "$0")/../examples/first_steps"

bold() { if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi; }

bold "examples/first_steps/train.py was written on a laptop and runs there."
bold "\$ torchport rehearse train.py        # the same file, on a GPU that this machine need not have"
code=0
../../.venv/bin/torchport rehearse --html ../../torchport-report.html train.py || code=$?
# 1 says that there are findings, and there are.
[ "$code" -le 1 ] || exit "$code"

bold "Next: .venv/bin/torchport rehearse YOUR_SCRIPT.py, or the page torchport-report.html"
