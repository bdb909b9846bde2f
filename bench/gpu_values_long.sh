#!/usr/bin/env bash
# Long trainings of VALUES that need a GPU, each with its tables, to $OUT:
#
#     bash bench/gpu_values_long.sh [toys] [bare_toys] [ssn]
#
# toys       toy scenarios 2 and 3a for 24,000 steps, as preset `paper` trains them
# bare_toys  the same without flips and noise, as the released code is configured
# ssn        the SSN of preset `small`, 9,000 steps on all its data
#
# Without a name all three are run. The same command goes on where it was stopped. By
# the speeds in bench/RESULTS.md (1,254 volumes/s for five runs together), the 15
# networks of a toy scenario take about 40 minutes; this is computed, not measured.
# Nodules need the file of annotations (docs/lidc.md) or are left out by name:
# VARIANTS=toy_1,toy_2,toy_3a,toy_3b,gta bash bench/gpu_values_long.sh ssn
set -uo pipefail
cd "$(dirname "$0")/.."
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}"
python=${PYTHON:-python3}
out=${OUT:-runs/values_long}
variants=${VARIANTS:-toy_1,toy_2,toy_3a,toy_3b,lidc_texture,lidc_malignancy,gta}
five=softmax,ttd,ensemble,tta,ssn
failed=0

train() { "$python" -m qualms run "$@" || failed=1; }

for what in "${@:-all}"; do
    case $what in toys | bare_toys | ssn | all) ;; *)
        echo "expected toys, bare_toys or ssn, got $what" >&2
        exit 2
        ;;
    esac
    if [[ $what == toys || $what == all ]]; then
        train values/toy_2,toy_3a --preset paper --methods "$five" --together 5 \
            --out "$out/augmented"
    fi
    if [[ $what == bare_toys || $what == all ]]; then
        train values/toy_2,toy_3a --preset paper --methods "$five" --together 5 \
            -o 'augment=[]' --out "$out/bare"
    fi
    if [[ $what == ssn || $what == all ]]; then
        train "values/$variants" --preset small --methods ssn --together 3 \
            --out "$out/ssn"
    fi
done
exit "$failed"
