#!/bin/sh
# KDuel's guest script: sh guest.sh OUT
# Captures the environment, settles, runs the steps below one after the other and leaves everything in the directory OUT.
# It runs on any Linux as root; a program that is missing fails its own step only.
export LC_ALL=C.UTF-8
umask 022
[ -n "${1:-}" ] || { echo "usage: sh $0 OUT" >&2; exit 2; }
mkdir -p "$1" && OUT=$(cd "$1" && pwd) || exit 2
WORK=$(mktemp -d) || exit 2
KDUEL_SCRATCH=${KDUEL_SCRATCH:-$WORK/scratch}
KDUEL_PROGRAMS=${KDUEL_PROGRAMS:-$WORK}
export KDUEL_SCRATCH KDUEL_PROGRAMS
PATH=$PATH:$KDUEL_PROGRAMS
mkdir -p "$KDUEL_SCRATCH" "$OUT/environment" "$OUT/gates"

# Hundredths of a second since boot, in $now.
look() {
    read -r up _ </proc/uptime
    now=$((${up%.*} * 100 + 1${up#*.} - 100))
}

tell() { [ -z "${KDUEL_CONSOLE:-}" ] || echo "kduel: $*" >"$KDUEL_CONSOLE"; }

# Raw files about this boot. What is not there leaves an empty file or none: nothing is made up.
capture_environment() {
    cd "$OUT/environment" || return
    uname -a >uname
    uname -r >release
    uname -m >architecture
    cp /proc/cmdline /proc/cpuinfo /proc/meminfo /proc/version /proc/modules /proc/interrupts . 2>/dev/null
    grep -s . /sys/devices/system/clocksource/clocksource0/*_clocksource >clocksource
    grep -s . /sys/devices/system/cpu/vulnerabilities/* >vulnerabilities
    grep -rs . /proc/sys/kernel /proc/sys/vm >sysctl
    grep -s . /sys/kernel/debug/sched/preempt /sys/kernel/debug/sched/*features /sys/kernel/debug/sched/*_ns \
        /sys/kernel/debug/sched/*_ms /sys/kernel/debug/sched/nr_migrate /sys/kernel/debug/sched/tunable_scaling \
        /sys/kernel/sched_ext/state /sys/kernel/sched_ext/root/ops /sys/kernel/realtime \
        /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/transparent_hugepage/defrag \
        /sys/kernel/mm/lru_gen/enabled /sys/kernel/mm/ksm/run \
        /sys/devices/system/cpu/online /sys/devices/system/cpu/smt/active \
        /sys/devices/system/cpu/cpuidle/current_* /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor \
        /sys/devices/system/cpu/cpu*/cpufreq/scaling_driver /sys/devices/system/cpu/intel_pstate/no_turbo \
        /sys/devices/system/cpu/cpufreq/boost /sys/block/*/queue/scheduler \
        /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name /sys/class/dmi/id/bios_version >sys
    if [ -r /proc/config.gz ]; then
        cp /proc/config.gz config.gz
    elif [ -r "/boot/config-$(uname -r).gz" ]; then
        cp "/boot/config-$(uname -r).gz" config.gz
    elif [ -r "/boot/config-$(uname -r)" ]; then
        gzip -cn "/boot/config-$(uname -r)" >config.gz
    fi
    if [ -r /kduel.packages ]; then
        cp /kduel.packages packages
    else
        dpkg-query -W -f '${Package} ${Version}\n' >packages 2>/dev/null || rm -f packages
    fi
    dmesg >dmesg-start 2>/dev/null
    cat /proc/loadavg /proc/stat >stat-start
    cd /
}

capture_end() {
    dmesg >"$OUT/environment/dmesg-end" 2>/dev/null
    cat /proc/loadavg /proc/stat >"$OUT/environment/stat-end"
    grep -s . /sys/devices/system/clocksource/clocksource0/*_clocksource >"$OUT/environment/clocksource-end"
}

# settle idle|fixed SECONDS: wait SECONDS, or until the CPUs have been nine tenths idle for two seconds, at most SECONDS.
settle() {
    look; settled_from=$now; idle=null
    if [ "$1" = fixed ]; then
        sleep "$2"
    else
        limit=$((now + $3)); quiet=0; idle=false
        read -r _ u n s i w q f t _ </proc/stat
        while [ "$now" -lt "$limit" ]; do
            sleep 1
            busy=$((u + n + s + q + f + t)); all=$((busy + i + w))
            read -r _ u n s i w q f t _ </proc/stat
            busy=$((u + n + s + q + f + t - busy)); all=$((u + n + s + q + f + t + i + w - all))
            if [ $((busy * 10)) -le "$all" ]; then quiet=$((quiet + 1)); else quiet=0; fi
            look
            [ "$quiet" -lt 2 ] || { idle=true; break; }
        done
    fi
    look
    printf '{"mode": "%s", "seconds": %s, "idle": %s}\n' "$1" "$(hundredths $((now - settled_from)))" "$idle" \
        >"$OUT/settle.json"
}

hundredths() { printf '%d.%02d' $(($1 / 100)) $(($1 % 100)); }

# run DIRECTORY TIMEOUT SCRIPT: run the script; stdout, stderr, exit.json into DIRECTORY.
run() {
    rm -rf "$WORK/here" && mkdir -p "$1" "$WORK/here" && cd "$WORK/here" || return
    look; from=$now
    timeout -k 5 "$2" env KDUEL_STEP="$1" sh -e "$3" >"$1/stdout" 2>"$1/stderr" </dev/null
    status=$?
    look
    printf '{"status": %d, "seconds": %s, "started": %s}\n' \
        "$status" "$(hundredths $((now - from)))" "$(hundredths "$from")" >"$1/exit.json"
    cd /
}

# setup: standard input is a script that must succeed before anything is measured.
setup() {
    cat >"$WORK/setup.sh"
    run "$OUT/setup" 300 "$WORK/setup.sh" # a sched_ext scheduler takes up to a minute in an emulator
    [ "$status" = 0 ] || { tell "setup failed"; echo "setup failed with $status" >&2; cat "$OUT/setup/stderr" >&2; exit 3; }
}

# gate WHEN NAME: standard input is a script that looks at the guest's state; what it says goes to gates/NAME.WHEN.
gate() {
    cat >"$WORK/gate.sh"
    sh "$WORK/gate.sh" >"$OUT/gates/$2.$1" 2>&1 </dev/null
    gate_status=$?
    echo "$gate_status" >"$OUT/gates/$2.$1.status"
}

# step NAME TIMEOUT: standard input is the step's script. A gate before it that failed keeps it from running.
step() {
    cat >"$WORK/step.sh"
    if [ "$gate_status" != 0 ]; then
        mkdir -p "$OUT/$1"
        : >"$OUT/$1/stdout"
        echo "kduel: not run: the gate before this step ended with $gate_status" >"$OUT/$1/stderr"
        echo '{"status": 125, "seconds": null, "started": null}' >"$OUT/$1/exit.json"
        return
    fi
    tell "step $1"
    run "$OUT/$1" "$2" "$WORK/step.sh"
    find "$KDUEL_SCRATCH" -mindepth 1 -maxdepth 1 ! -name lost+found -exec rm -rf {} +
    sync
}

gate_status=0
capture_environment
