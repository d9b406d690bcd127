#!/bin/sh
# pantalla: every night from cron, one run at a time.
#
#   15 2 * * *  PANTALLA_JOB=/srv/pantalla/job.toml /srv/pantalla/cron.sh
#
# Tried: run by sh with flock and util-linux's timeout, alone and twice at once (see the tests).
# Not tried: a cron daemon itself.
#
# Starting it again is always right: what is committed is not done again, and new shards that match
# the job's patterns join. A run that is still going keeps the lock, and this one leaves at once.
set -u

job=${PANTALLA_JOB:?the job file, for example /srv/pantalla/job.toml}
pantalla=${PANTALLA:-pantalla}          # a path where cron's PATH does not have it
log=${PANTALLA_LOG:-${job%.toml}.log}
hours=${PANTALLA_HOURS:-6}              # stop by SIGTERM after so long: it commits and leaves

exec 9>"$job.lock"
flock -n 9 || exit 0

timeout --signal=TERM --kill-after=120 "${hours}h" \
    "$pantalla" run "$job" >>"$log" 2>&1
code=$?

case $code in
    0) ;;                               # all done
    124 | 143) ;;                       # time was up: tomorrow's run goes on
    1) echo "pantalla: finished, but look at the report (rejects, or reviews that wait): $log" ;;
    3 | 4) echo "pantalla: engine or storage was lost, the next run goes on: $log" ;;
    *) echo "pantalla: exit code $code, this needs a person: $log" ;;
esac                                    # what is printed, cron sends by mail
exit 0
