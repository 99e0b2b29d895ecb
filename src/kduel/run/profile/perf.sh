#!/bin/sh
# A step under perf. The words with @ are put in.
command -v perf >/dev/null || { echo "perf is not installed (@PACKAGE@)" >&2; exit 1; }
cat >kduel-step.sh <<'@MARK@'
@STEP@
@MARK@
event=cycles
perf record -q -B -N -e cycles -o probe.data true >/dev/null 2>probe.err && perf script -i probe.data -F event 2>/dev/null |
    grep -q '^ *cycles' || event=cpu-clock
grep '^cpu' /proc/stat >"$KDUEL_STEP/stat.before"
status=0
sh -c 'echo $$ >"$KDUEL_STEP/perf.pid"; exec "$@"' sh \
    perf record -q -a -g -B -N -F @FREQUENCY@ -e "$event" -o step.data -- sh -e "$PWD/kduel-step.sh" || status=$?
grep '^cpu' /proc/stat >"$KDUEL_STEP/stat.after"
[ "$status" = 0 ] || exit "$status"
restrict=$(cat /proc/sys/kernel/kptr_restrict)
if [ "$restrict" != 0 ]; then echo 0 >/proc/sys/kernel/kptr_restrict; fi
grep -i ' [tw] ' /proc/kallsyms | gzip -1 >"$KDUEL_STEP/kallsyms.gz"
if [ "$restrict" != 0 ]; then echo "$restrict" >/proc/sys/kernel/kptr_restrict; fi
perf script -i step.data -F pid,event,period,ip 2>"$KDUEL_STEP/perf-script.err" | gzip -1 >"$KDUEL_STEP/samples.gz"
perf --version >"$KDUEL_STEP/perf.version"
