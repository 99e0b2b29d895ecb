
# What the machine did during each step, from inside: its running totals at the step's start and end, in OUT/host, for
# kduel.guest.hostinside. Only on a real machine: in a guest these are not the host's. One program each time, outside of
# what is measured.
mkdir -p "$OUT/host"
totals() {
    LC_ALL=C grep -oE '^(cpu .*|intr [0-9]+|some .*|[0-9].*)' /proc/uptime /proc/stat \
        /proc/pressure/cpu /proc/pressure/io /proc/pressure/memory \
        /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq \
        /sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count >"$OUT/host/$1" 2>/dev/null
}
# `step` tells when a step begins and when it has ended.
tell() {
    [ -z "${KDUEL_CONSOLE:-}" ] || echo "kduel: $*" >"$KDUEL_CONSOLE"
    case $1 in
        "step "*" ended") told=${1#step }; totals "${told% ended}.end" ;;
        "step "*) totals "${1#step }.begin" ;;
    esac
}
