# shellcheck shell=bash
# Your cluster's settings, read by slurm/submit.sh; the environment, and options of sbatch, win. Empty: what the sbatch
# file or the cluster says.
: "${CRAFTAX_NB_PARTITION:=}"  # for example gpu
: "${CRAFTAX_NB_ACCOUNT:=}"    # whom the hours are billed to
: "${CRAFTAX_NB_GRES:=}"       # for example gpu:1; none by default: everything runs on CPUs too
: "${CRAFTAX_NB_TIME:=}"       # for example 08:00:00
: "${CRAFTAX_NB_CPUS:=}"       # of a task
: "${CRAFTAX_NB_MEM:=}"        # for example 16G
: "${CRAFTAX_NB_OPTIONS:=}"    # more options of sbatch, for example --qos=long --constraint=a100
