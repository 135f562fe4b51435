# shellcheck shell=bash
# worker_options PAPERMILL_ARGUMENTS: the options of a worker that label.ipynb's parameters ask for, so that the workers
# of all tasks use the same backend and as many GPUs as the coordinator's own.
worker_options() {
  local words=()
  while [ $# -ge 3 ]; do
    case $2 in
      backend | tensor_parallel | pipeline_parallel | gpu_memory) words+=("--${2//_/-}" "$3"); shift 3 ;;
      expert_parallel) [ "$3" != True ] || words+=(--expert-parallel); shift 3 ;;
      *) shift ;;
    esac
  done
  echo "${words[@]}"
}
