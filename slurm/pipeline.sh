#!/bin/bash
# Submits the whole chain: PPO, labels, AWR without and with them, BC and BC of the best tenth of the episodes side by
# side, evaluation of the last checkpoint of each. Each step starts when those before it ended well; when one fails,
# those that wait for it are cancelled. From the project's folder:
#   slurm/pipeline.sh runs/mine
#   PPO="-p steps 50000000" LABEL="-r model Qwen/Qwen3-4B" AWR="-p beta 0.3" EVALUATE="-p episodes 1000" WORKERS=8 \
#     slurm/pipeline.sh runs/mine
# PPO, LABEL, AWR, BC and EVALUATE are papermill's arguments (EVALUATE="-p every_step True" evaluates every checkpoint);
# OPTIONS are sbatch's, for all steps. Submitted again it skips what is done. Prints the jobs' ids.
set -euo pipefail
folder=${1:?a folder for the runs, for example runs/mine}
read -ra options <<< "${OPTIONS:-}"

# step NAME AFTER FILE [arguments]: submits FILE after the jobs in AFTER (separated by colons), prints its id
step() {
  local name=$1 after=$2 file=$3 id
  shift 3
  id=$(slurm/submit.sh --job-name="$name" ${after:+"--dependency=afterok:$after"} --kill-on-invalid-dep=yes \
    "${options[@]}" "${array[@]}" "slurm/$file" "$@")
  echo "$name $id" >&2
  echo "$id"
}

array=()
# shellcheck disable=SC2086
ppo=$(step ppo "" train.sbatch nbs/train_ppo.ipynb ${PPO:-} -r run_dir "$folder/ppo")
array=("--array=0-$((${WORKERS:-2} - 1))")
# shellcheck disable=SC2086
label=$(step label "$ppo" label.sbatch -r data "$folder/ppo" ${LABEL:-} -r run_dir "$folder/label")
array=()
# shellcheck disable=SC2086
{
  awr=$(step awr "$ppo" train.sbatch nbs/train_awr.ipynb -r data "$folder/ppo" ${AWR:-} -r run_dir "$folder/awr")
  aware=$(step awr_labels "$label" train.sbatch nbs/train_awr.ipynb -r data "$folder/ppo" -p augment True ${AWR:-} \
    -r run_dir "$folder/awr_labels")
  bc=$(step bc "$ppo" train.sbatch nbs/train_bc.ipynb -r data "$folder/ppo" ${BC:-} -r run_dir "$folder/bc")
  best=$(step bc_best "$ppo" train.sbatch nbs/train_bc.ipynb -r data "$folder/ppo" ${BC:-} -p best 0.1 \
    -r run_dir "$folder/bc_best")
  agents=$folder/ppo,$folder/awr,$folder/bc,$folder/bc_best,$folder/awr_labels
  step evaluate "$awr:$aware:$bc:$best" evaluate.sbatch -r checkpoint "$agents" -p every_step False ${EVALUATE:-} \
    -r run_dir "$folder/evaluate" > /dev/null
}
