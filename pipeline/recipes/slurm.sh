#!/bin/bash
# pantalla: a Slurm array; each task does one part of the job on one GPU.
#
#   annotate=$(sbatch --parsable --array=1-8 slurm.sh job.toml)
#   sbatch --dependency=afterok:$annotate --gpus=0 slurm.sh job.toml    # proves, pushes, reports
#
# Tried: run by bash with what sbatch sets (SLURM_ARRAY_TASK_ID, SLURM_ARRAY_TASK_COUNT), killed and
# started again (see the tests). Not tried: a Slurm cluster.
#
#SBATCH --job-name=pantalla
#SBATCH --gpus=1
#SBATCH --cpus-per-task=8
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@120
#
# Ids of the array count from 1, like partitions: --array=1-8 is 1/8 ... 8/8. Preempted or out of
# time, Slurm sends SIGTERM 120 s before the end; the run commits what is in work within
# run.grace_seconds and ends with 143, and the task is put back into the queue, where it goes on.
set -u

job=${1:?the job file}
pantalla=${PANTALLA:-pantalla}

part=()
if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
    part=(--partition "$SLURM_ARRAY_TASK_ID/${SLURM_ARRAY_TASK_COUNT:?}")
fi

"$pantalla" run "$job" ${part[@]+"${part[@]}"} &
child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM    # --signal=B: reaches this shell, not its children
wait "$child"
code=$?
while kill -0 "$child" 2>/dev/null; do          # the trap ended the wait, not the run
    wait "$child"
    code=$?
done

case $code in
    143 | 3 | 4)                                # stopped, or engine or storage lost: go on later
        if [ -n "${SLURM_JOB_ID:-}" ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 20 ]; then
            scontrol requeue "$SLURM_JOB_ID" && exit 0
        fi ;;
esac
exit $code
