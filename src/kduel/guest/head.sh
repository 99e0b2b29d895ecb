#!/bin/sh
# KDuel's guest script: sh guest.sh OUT
# Captures the environment, settles, runs the steps below one after the other and leaves everything in the directory OUT.
# It runs on any Linux as root; a program that is missing fails its own step only.
# Programs are started sparingly outside of steps: in an emulated guest each costs tens of milliseconds, more where it is
# to be read from disk first. So what can be done before settling is done there (make_ready).

# Hundredths of a second since boot, in $now.
look() {
    read -r up _ </proc/uptime
    now=$((${up%.*} * 100 + 1${up#*.} - 100))
}

look
began=$now
umask 022
case ${1:-} in
    '') echo "usage: sh $0 OUT" >&2; exit 2 ;;
    /*) OUT=$1 ;;
    *) OUT=$PWD/$1 ;;
esac
WORK=${KDUEL_WORK:+$KDUEL_WORK-$$}
WORK=${WORK:-$OUT/.work}
mkdir -p "$OUT/environment" "$WORK/scratch" || exit 2
export LC_ALL=C.UTF-8
KDUEL_SCRATCH=${KDUEL_SCRATCH:-$WORK/scratch}
KDUEL_PROGRAMS=${KDUEL_PROGRAMS:-$WORK}
export KDUEL_SCRATCH KDUEL_PROGRAMS
PATH=$PATH:$KDUEL_PROGRAMS

# Hundredths of a second as seconds, in $text.
seconds() {
    text=00$(($1 % 100))
    text=$(($1 / 100)).${text#"${text%??}"}
}

# The path of a program that belongs to this system, in $path: busybox's shell prefers its own to those in PATH.
find_program() {
    for path in "/usr/bin/$1" "/bin/$1" "$1"; do
        [ ! -x "$path" ] || return 0
    done
}

tell() { [ -z "${KDUEL_CONSOLE:-}" ] || echo "kduel: $*" >"$KDUEL_CONSOLE"; }

clock=/sys/devices/system/clocksource/clocksource0

# Masks of each CPU's scheduler domains, as /kduel.domains:CPU MASK... A kernel since 6.15 has a name before the mask.
capture_domains() {
    cpu='' masks=''
    while read -r word first second _; do
        case $word in
            cpu[0-9]*)
                [ -z "$cpu" ] || echo "/kduel.domains:${cpu#cpu}$masks"
                cpu=$word masks=''
                ;;
            domain[0-9]*)
                case $first in
                    *[!0-9a-f,]*) masks="$masks $second" ;;
                    *) masks="$masks $first" ;;
                esac
                ;;
        esac
    done </proc/schedstat
    [ -z "$cpu" ] || echo "/kduel.domains:${cpu#cpu}$masks"
}

# Raw facts about this boot, as PATH:LINE of many files. What is not there leaves nothing: nothing is made up.
capture_environment() {
    uname -a >"$OUT/environment/uname"
    read -r release </proc/sys/kernel/osrelease
    LC_ALL=C grep -sa . /kduel.packages /proc/cmdline /proc/cpuinfo /proc/meminfo /proc/version /proc/modules \
        /proc/interrupts /proc/loadavg /proc/stat /proc/sys/kernel/* /proc/sys/kernel/seccomp/* /proc/sys/vm/* \
        /sys/devices/system/cpu/vulnerabilities/* /sys/devices/system/cpu/online /sys/devices/system/cpu/smt/active \
        /sys/devices/system/cpu/cpuidle/current_* /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor \
        /sys/devices/system/cpu/cpu*/cpufreq/scaling_driver /sys/devices/system/cpu/intel_pstate/no_turbo \
        /sys/devices/system/cpu/cpufreq/boost /sys/devices/system/cpu/amd_pstate/status \
        /sys/kernel/debug/sched/preempt /sys/kernel/debug/sched/*features /sys/kernel/debug/sched/*_ns \
        /sys/kernel/debug/sched/*_ms /sys/kernel/debug/sched/nr_migrate /sys/kernel/debug/sched/tunable_scaling \
        /sys/kernel/sched_ext/state /sys/kernel/sched_ext/root/ops /sys/kernel/realtime \
        /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/transparent_hugepage/defrag \
        /sys/kernel/mm/lru_gen/enabled /sys/kernel/mm/ksm/run /sys/block/*/queue/scheduler \
        /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name /sys/class/dmi/id/bios_version \
        /sys/devices/system/cpu/cpu*/topology/thread_siblings_list \
        /sys/devices/system/cpu/cpu*/topology/core_siblings_list \
        /sys/devices/system/cpu/cpu*/cache/index3/shared_cpu_list /sys/devices/system/node/node*/cpulist \
        /sys/devices/system/node/node*/distance \
        >"$OUT/environment/files" 2>/dev/null
    capture_domains >>"$OUT/environment/files" 2>/dev/null
    for config in /proc/config.gz "/boot/config-$release.gz"; do
        [ -r "$config" ] && cp "$config" "$OUT/environment/config.gz" && break
    done
    if [ ! -e "$OUT/environment/config.gz" ] && [ -r "/boot/config-$release" ]; then
        gzip -cn "/boot/config-$release" >"$OUT/environment/config.gz"
    fi
    if [ ! -r /kduel.packages ] && command -v dpkg-query >/dev/null; then
        # shellcheck disable=SC2016 # dpkg-query's own words
        dpkg-query -W -f '/kduel.packages:${Package} ${Version}\n' >>"$OUT/environment/files" 2>/dev/null
    fi
}

# make_ready NAME...: make the directories of all steps, and have what steps and the end need read from disk.
make_ready() {
    for name; do
        shift
        set -- "$@" "$OUT/$name" "$WORK/$name"
    done
    [ $# = 0 ] || mkdir -p "$@"
    "$timeout" 9 "$shell" -c :
} 2>/dev/null

end() {
    dmesg >"$OUT/environment/dmesg" 2>/dev/null
    read -r line 2>/dev/null <"$OUT/environment/dmesg"
    case $line in
        '['*'] Linux version '* | '['*'] Booting Linux '*) ;;
        # Busybox's takes a quarter of the time, but cuts a long log, and has no times of a kernel that prints none.
        *) [ "$dmesg" = dmesg ] || "$dmesg" >"$OUT/environment/dmesg" 2>/dev/null ;;
    esac
    for file in $clock/current_clocksource /proc/loadavg /proc/stat; do
        read -r line <"$file" && echo "$file:$line"
    done >"$OUT/environment/files-end" 2>/dev/null
    [ -n "${KDUEL_WORK:-}" ] || rm -rf "$WORK"
}

# The kernel takes up the TSC about a second after it is found; nothing is measured before.
await_clock() {
    waits=150
    while [ $waits -gt 0 ] && read -r line 2>/dev/null <"$clock/current_clocksource"; do
        case $line in
            tsc-early | *jiffies) sleep 0.02 ;;
            *) break ;;
        esac
        waits=$((waits - 1))
    done
    for file in "$clock/current_clocksource" "$clock/available_clocksource"; do
        read -r line 2>/dev/null <"$file" && echo "$file:$line"
    done >>"$OUT/environment/files"
}

# settle fixed HUNDREDTHS, settle idle HUNDREDTHS SECONDS: wait that long, or until the CPUs have been nine tenths idle in
# two looks of SECONDS in a row. It counts from the beginning of the script, or the end of the setup: looking at the
# environment is a part of settling.
settle() {
    look
    idle=null
    if [ "$1" = fixed ]; then
        left=$((began + $2 - now))
        if [ "$left" -gt 0 ]; then
            seconds "$left"
            sleep "$text"
        fi
    else
        limit=$((now + $2)) quiet=0 idle=false
        read -r _ u n s i w q f t _ </proc/stat
        while [ "$now" -lt "$limit" ]; do
            sleep "$3"
            busy=$((u + n + s + q + f + t)) all=$((u + n + s + q + f + t + i + w))
            read -r _ u n s i w q f t _ </proc/stat
            busy=$((u + n + s + q + f + t - busy)) all=$((u + n + s + q + f + t + i + w - all))
            if [ $((busy * 10)) -le "$all" ]; then quiet=$((quiet + 1)); else quiet=0; fi
            look
            if [ "$quiet" -ge 2 ]; then
                idle=true
                break
            fi
        done
    fi
    await_clock
    look
    seconds $((now - began))
    echo "{\"mode\": \"$1\", \"seconds\": $text, \"idle\": $idle}" >"$OUT/settle.json"
}

# run NAME TIMEOUT: standard input is a script; its stdout, stderr and exit.json go into OUT/NAME.
run() {
    export KDUEL_STEP="$OUT/$1"
    if [ ! -d "$KDUEL_STEP" ] || [ ! -d "$WORK/$1" ]; then
        mkdir -p "$KDUEL_STEP" "$WORK/$1" || return
    fi
    cd "$WORK/$1" || return
    look
    from=$now
    "$timeout" -k 5 "$2" "$shell" -e /dev/fd/9 9<&0 >"$KDUEL_STEP/stdout" 2>"$KDUEL_STEP/stderr" </dev/null
    status=$?
    look
    seconds "$from"
    from_text=$text
    seconds $((now - from))
    echo "{\"status\": $status, \"seconds\": $text, \"started\": $from_text}" >"$KDUEL_STEP/exit.json"
    cd /
}

# load NAME...: kernel modules, which the initial RAM disk of a guest carries and modprobe finds elsewhere. One that the
# kernel has built in or lacks shows when it is used.
load() {
    for name; do
        if [ -r "/kduel/carried/$name" ]; then
            while read -r file; do insmod "$file"; done <"/kduel/carried/$name"
        else
            modprobe -q "$name"
        fi
    done
} 2>/dev/null

# service NAME TIMEOUT: standard input is the script that starts what several steps share, in $KDUEL_SERVICE. Where it
# fails the directory is removed: no step that uses it runs then.
service() {
    mkdir -p "$KDUEL_SERVICE"
    run "services/$1" "$2"
    if [ "$status" != 0 ]; then
        end_service
        mkdir -p "${KDUEL_SERVICE%/*}"
        tail -n 5 "$OUT/services/$1/stderr" >"$KDUEL_SERVICE.failed"
    fi
}

# Whether the process $pid is there, and more than a zombie.
lives() {
    read -r line 2>/dev/null <"/proc/$pid/stat" || return 1
    case $line in *") Z "*) return 1 ;; esac
}

# Whether all servers of $KDUEL_SERVICE live, those whose process IDs are in its files *.pid.
serves() {
    [ -n "${KDUEL_SERVICE:-}" ] || return 0
    [ -d "$KDUEL_SERVICE" ] || return 1
    for file in "$KDUEL_SERVICE"/*.pid; do
        [ ! -r "$file" ] || { read -r pid <"$file" && lives; } || return 1
    done
}

# end_service: end its servers, first kindly, and remove its directory. Lines in the file stop take back all else.
end_service() {
    for file in "$KDUEL_SERVICE"/*.pid; do
        if ! [ -r "$file" ] || ! read -r pid <"$file" || ! kill "$pid"; then continue; fi
        waits=100
        while [ "$waits" -gt 0 ] && lives; do
            sleep 0.1
            waits=$((waits - 1))
        done
        ! lives || kill -KILL "$pid"
    done 2>/dev/null
    [ ! -r "$KDUEL_SERVICE/stop" ] || "$timeout" 60 "$shell" "$KDUEL_SERVICE/stop" >&2
    rm -rf "$KDUEL_SERVICE"
}

# setup: standard input is a script that must succeed before anything is measured.
setup() {
    run setup 300 # a sched_ext scheduler takes up to a minute to attach in an emulator
    began=$now
    [ "$status" = 0 ] && return
    tell "setup failed"
    cat "$OUT/setup/stderr" >&2
    end
    exit 3
}

# gate WHEN NAME: standard input is a script that looks at the guest's state; what it says goes to gates/NAME.WHEN.
gate() {
    [ -d "$OUT/gates" ] || mkdir "$OUT/gates"
    "$shell" /dev/fd/9 9<&0 >"$OUT/gates/$2.$1" 2>&1 </dev/null
    gate_status=$?
    echo "$gate_status" >"$OUT/gates/$2.$1.status"
}

# refuse NAME WHY: the step does not count, and its standard error says why.
refuse() {
    mkdir -p "$OUT/$1"
    : >>"$OUT/$1/stdout"
    echo "kduel: $2" >>"$OUT/$1/stderr"
    echo '{"status": 125, "seconds": null, "started": null}' >"$OUT/$1/exit.json"
}

# step NAME TIMEOUT: standard input is the step's script. A gate before it that failed keeps it from running, and a
# service that is not there.
step() {
    tell "step $1"
    if [ "$gate_status" != 0 ]; then
        refuse "$1" "not run: the gate before this step ended with $gate_status"
        return
    fi
    if ! serves; then
        refuse "$1" "not run: the service ${KDUEL_SERVICE##*/} is not there: $(cat "$KDUEL_SERVICE.failed" 2>/dev/null)"
        return
    fi
    run "$1" "$2"
    serves || refuse "$1" "the service ${KDUEL_SERVICE##*/} ended during this step"
    tell "step $1 ended"
    set --
    for left in "$KDUEL_SCRATCH"/* "$KDUEL_SCRATCH"/.[!.]*; do
        case $left in
            */lost+found | */services) ;;
            *) [ ! -e "$left" ] || set -- "$@" "$left" ;;
        esac
    done
    [ $# = 0 ] || { rm -rf "$@" && sync; }
}

find_program sh
shell=$path
find_program timeout
timeout=$path
find_program dmesg
dmesg=$path
gate_status=0
capture_environment
