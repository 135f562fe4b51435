# Sourced by the sbatch files: who this task is, its environment, and how a notebook is run, stopped, requeued and gone
# on with.
# shellcheck shell=bash
set -uo pipefail
cd "${SLURM_SUBMIT_DIR:?submit this with slurm/submit.sh or sbatch}" || exit 1
python=${CRAFTAX_NB_PYTHON:-$PWD/.venv/bin/python}
# The last element of an array has the whole array's SLURM_JOB_ID, so a task is named by both.
me=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}}
me=${me:-$SLURM_JOB_ID}
try=${SLURM_RESTART_COUNT:-0}

unset PYTHONPATH PYTHONHOME
cpus=${SLURM_CPUS_PER_TASK:-1}
export SRUN_CPUS_PER_TASK=$cpus OMP_NUM_THREADS=$cpus MPLBACKEND=Agg PYTHONUNBUFFERED=1 JUPYTER_PREFER_ENV_PATH=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export IPYTHONDIR=$scratch/ipython JUPYTER_RUNTIME_DIR=$scratch/jupyter  # off the shared disk, one a task
# This shell must outlive the signals, or its steps are killed at once.
trap : TERM USR1 CONT

log() { echo "[$(date +%FT%T)] $me try $try: $*"; }

# Waits for a background process through interruptions by signals; sets code.
wait_for() {
  while wait "$1"; code=$?; kill -0 "$1" 2>/dev/null; do :; done
}

# stoppable COMMAND: a step whose command is told to end by TERM when USR1 or TERM comes; $scratch/stop says that one
# came.
stoppable() {
  # shellcheck disable=SC2016
  srun bash -c 'stop=$1; shift; "$@" & p=$!; trap "touch $stop; kill -TERM $p" TERM USR1
    while wait $p; code=$?; kill -0 $p 2>/dev/null; do :; done; exit $code' _ "$scratch/stop" "$@"
}

# Whether SLURM still counts this task as running: its time limit or a preemption is near. Otherwise it was cancelled.
still_mine() { [ "$(squeue -h -j "$me" -o %T 2>/dev/null)" = RUNNING ]; }

# Ends the task so that it starts again; or for good, after MAX_RESTARTS times.
again() {
  if [ "$try" -ge "${MAX_RESTARTS:-20}" ]; then log "stopped after $try restarts"; exit 75; fi
  log requeue
  scontrol requeue "$me" && sleep 120  # SLURM ends this script
  exit 1
}

status_of() {
  "$python" -c 'import sys; from craftax_nb.runs.run import read_status; print(read_status(sys.argv[1]).status)' \
    "$1"
}

# The run folder that papermill's arguments name, directly or in a parameter file; else one named by this task.
run_folder() {
  local notebook=$1 given="" previous="" word
  shift
  for word in "$@"; do
    case $previous in
      run_dir) given=$word ;;
      -f | --parameters_file) given=$(sed -n "s/^run_dir: *['\"]\{0,1\}\(.*[^'\"]\)['\"]\{0,1\}$/\1/p" "$word") ;;
    esac
    previous=$word
  done
  echo "${given:-runs/$(basename "$notebook" .ipynb)-slurm-$me}"
}

# run_notebook NOTEBOOK [papermill's arguments]: runs it and ends the task. The exit code is 0 only when the run says
# that it finished.
run_notebook() {
  local notebook=$1 run output n=0 status args mine=""
  shift
  args=("${@//\{task\}/${SLURM_ARRAY_TASK_ID:-0}}")
  run=$(run_folder "$notebook" "${args[@]}")
  if [ "$(status_of "$run")" = finished ]; then log "$run is done"; exit 0; fi
  mkdir -p "$run"
  while [ -e "$run/notebook.try$n.ipynb" ]; do n=$((n + 1)); done  # the notebook of every attempt is kept
  output=$run/notebook.try$n.ipynb
  CRAFTAX_NB_LOG=$(scontrol show job "$me" 2>/dev/null | sed -n 's/^ *StdOut=//p')
  export CRAFTAX_NB_LOG CRAFTAX_NB_INPUT=$notebook CRAFTAX_NB_OUTPUT=$PWD/$output
  [[ $run == /* ]] && CRAFTAX_NB_OUTPUT=$output
  log "$notebook ${args[*]} on $(hostname) with $cpus CPUs, GPUs ${CUDA_VISIBLE_DEVICES:-none}, to $run"
  # papermill ignores the signals; the kernel has its own handlers.
  srun --kill-on-bad-exit=1 bash -c 'trap "" TERM USR1; exec "$@"' _ "$python" -m papermill "$notebook" "$output" \
    -k python3 --cwd "$PWD" --log-output --no-progress-bar "${args[@]}" -r run_dir "$run" &
  wait_for $!
  still_mine && mine=1  # asked at once: the time limit may be seconds away
  status=$(status_of "$run")
  log "exit code $code, run $status"
  if [ "$code" -eq 0 ] && [ "$status" = finished ]; then exit 0; fi
  if [ "$code" -eq 0 ] && [ "$status" = stopped ]; then  # it stopped itself, with a checkpoint
    if [ -n "$mine" ]; then again; fi
    exit 0
  fi
  exit $((code ? code : 1))
}
