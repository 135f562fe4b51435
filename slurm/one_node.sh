#!/usr/bin/env bash
# A throw-away SLURM on this machine's loopback, for tests: munged, slurmctld and slurmd, as root, without systemd and
# cgroups.
#   eval "$(slurm/one_node.sh up DIR)"  starts it (installs Debian's packages if they are missing) and sets SLURM_CONF
#   slurm/one_node.sh down DIR          ends the daemons that it started
set -euo pipefail
action=${1:?up or down} dir=${2:?a folder for its state}
export SLURM_CONF=$dir/slurm.conf

# running ID: the process runs (a zombie, which a container's first process may never reap, doesn't); alive FILE: the
# one whose id is in FILE does.
running() { grep -q '^State:[[:space:]]*[^Z]' "/proc/$1/status" 2>/dev/null; }
alive() { local p; p=$(cat "$1" 2>/dev/null) && [ -n "$p" ] && running "$p"; }

if [ "$action" = down ]; then
  # Jobs first: a slurmd that waits for a step outlives its pid file.
  scancel --quiet -u "$(id -un)" 2>/dev/null || true
  for _ in $(seq 90); do [ -n "$(squeue -h 2>/dev/null)" ] || break; sleep 0.5; done
  for name in slurmd slurmctld munged; do
    if ! alive "$dir/$name.pid"; then continue; fi
    pid=$(cat "$dir/$name.pid")
    kill "$pid"
    for _ in $(seq 100); do running "$pid" || break; sleep 0.1; done
    if running "$pid"; then kill -9 "$pid" || true; fi
  done
  exit 0
fi

if ! command -v slurmctld slurmd sbatch munged >/dev/null; then
  {
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge
  } >&2
fi
mkdir -p "$dir"/{state,spool}
chmod 755 "$dir"
(umask 077; [ -s "$dir/munge.key" ] || head -c 128 /dev/urandom > "$dir/munge.key")
cpus=${SLURM_TEST_CPUS:-$(nproc)} memory=$(awk '/MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
port=$(sed -n "s/^SlurmctldPort=//p" "$SLURM_CONF" 2>/dev/null || true)
port=${port:-$((20000 + 2 * (RANDOM % 5000)))}  # several may run on one machine
cat > "$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
# a requeued job waits for its credential to expire, 120 s by default
AuthInfo=socket=$dir/munge.socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=2,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
JobRequeue=1
KillWait=20
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
NodeName=node1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$cpus RealMemory=$memory State=UNKNOWN
PartitionName=main Nodes=node1 Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=60
PartitionName=urgent Nodes=node1 MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
CONF
echo "CgroupAutomount=no" > "$dir/cgroup.conf"
alive "$dir/munged.pid" || munged --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" \
  --pid-file="$dir/munged.pid" --seed-file="$dir/munge.seed" --log-file="$dir/munged.log" >&2
alive "$dir/slurmctld.pid" || slurmctld -f "$SLURM_CONF" >&2
alive "$dir/slurmd.pid" || slurmd -f "$SLURM_CONF" -N node1 >&2
for _ in $(seq 150); do
  case "$(sinfo -h -N -n node1 -p main -o %T 2>/dev/null || true)" in
    idle|mixed|allocated) echo "export SLURM_CONF=$SLURM_CONF"; exit 0 ;;
    down*|drain*) scontrol update nodename=node1 state=resume >/dev/null 2>&1 || true ;;
  esac
  sleep 0.2
done
echo "the node did not come up; see $dir/slurmctld.log and $dir/slurmd.log" >&2
exit 1
