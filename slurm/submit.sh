#!/bin/bash
# sbatch with this project's settings, from the project's folder; prints the job's id:
#   slurm/submit.sh [options of sbatch] slurm/train.sbatch nbs/train_awr.ipynb -p beta 0.3
set -euo pipefail
[ -f slurm/settings.sh ] || { echo "slurm/settings.sh isn't here: start this in the project's folder" >&2; exit 2; }
# shellcheck source=slurm/settings.sh
source slurm/settings.sh
options=()
add() { [ -z "$2" ] || options+=("--$1=$2"); }
add partition "$CRAFTAX_NB_PARTITION"
add account "$CRAFTAX_NB_ACCOUNT"
add gres "$CRAFTAX_NB_GRES"
add time "$CRAFTAX_NB_TIME"
add cpus-per-task "$CRAFTAX_NB_CPUS"
add mem "$CRAFTAX_NB_MEM"
read -ra more <<< "$CRAFTAX_NB_OPTIONS"
mkdir -p runs
exec sbatch --parsable "${options[@]}" "${more[@]}" "$@"
