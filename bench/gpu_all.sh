#!/usr/bin/env bash
# All checks that need a GPU, in one call: the tests marked `gpu`, then training that
# must give equal weights. Needs torch and pytest, and no installation of qualms.
set -uo pipefail
cd "$(dirname "$0")/.."
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}"
python=${PYTHON:-python3}
failed=0
# Other test files need packages that a machine for training may not have.
mapfile -t files < <(grep -rl --include='*.py' 'mark\.gpu' tests)
"$python" -m pytest -m gpu --durations=10 "${files[@]}" || failed=1
"$python" bench/gpu_train.py --check || failed=1
exit "$failed"
