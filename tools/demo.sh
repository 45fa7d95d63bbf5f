#!/usr/bin/env bash
# The main job, on two small projects that train well on a CPU.
set -euo pipefail
cd "$(dirname "$0")/../examples"
torchport="$PWD/../.venv/bin/torchport"

bold() { if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi; }

bold "examples/laptop/train.py knows nothing of GPUs. A patch for it, with the proof that it computes the same:"
bold "\$ torchport migrate --entry train.py"
(cd laptop && "$torchport" migrate --entry train.py && rm -f torchport.patch)

bold "examples/first_steps/train.py has met a GPU once, and would stop on every one. All its faults in one run:"
bold "\$ torchport rehearse train.py"
code=0
(cd first_steps && "$torchport" rehearse --html ../../torchport-report.html train.py) || code=$?
# 1 says that there are findings, and there are.
[ "$code" -le 1 ] || exit "$code"

bold "Next: .venv/bin/torchport migrate YOUR_PROJECT --entry train.py, or the page torchport-report.html"
