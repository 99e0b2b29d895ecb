# The conditions of a machine: told, held within bands, set and put back. POSIX shell; needs root to set anything.
# KDUEL_SYSFS, KDUEL_PROC: other trees, for tests.
S=${KDUEL_SYSFS:-/sys}
P=${KDUEL_PROC:-/proc}
cpu=$S/devices/system/cpu

first() { [ -r "$1" ] && head -n 1 "$1" 2>/dev/null; }

# The different lines of some files, with commas.
all() { cat "$@" 2>/dev/null | sort -u | paste -sd, -; }

say() { [ -z "$2" ] || printf '%s=%s\n' "$1" "$2"; }

governor() { all "$cpu"/cpu[0-9]*/cpufreq/scaling_governor; }

turbo() {
    case $(first "$cpu/intel_pstate/no_turbo") in 0) echo on ;; 1) echo off ;; esac
    case $(first "$cpu/cpufreq/boost") in 1) echo on ;; 0) echo off ;; esac
}

smt() { case $(first "$cpu/smt/active") in 1) echo on ;; 0) echo off ;; esac; }

# AC where any mains is online, battery where there are batteries and no mains is; nothing where there is neither.
supply() {
    found=
    for d in "$S"/class/power_supply/*; do
        case $(first "$d/type") in
            Mains | USB) [ "$(first "$d/online")" != 1 ] || found=AC ;;
            Battery) [ "$(first "$d/scope")" = Device ] || found=${found:-battery} ;;
        esac
    done
    echo "$found"
}

# The hottest of the processor's sensors, in thousandths of a degree; of all zones where none is called so.
temperature() {
    hottest= any=
    for z in "$S"/class/thermal/thermal_zone*; do
        t=$(first "$z/temp")
        case $t in '' | *[!0-9]*) continue ;; esac
        [ "$t" -le "${any:-0}" ] || any=$t
        case $(first "$z/type") in
            x86_pkg_temp | *cpu* | *CPU* | TCPU) [ "$t" -le "${hottest:-0}" ] || hottest=$t ;;
        esac
    done
    echo "${hottest:-$any}"
}

# Programs that change priorities, and governors, of others while they run; gamemoded belongs to the user's session.
renicers() {
    found=$(all "$P"/[0-9]*/comm | tr , '\n' | grep -xE 'gamemoded|ananicy|ananicy-cpp' | paste -sd, -)
    echo "${found:-none}"
}

load() { read -r l _ <"$P/loadavg" 2>/dev/null && echo "$l"; }

tell_conditions() {
    say platform_profile "$(first "$S/firmware/acpi/platform_profile")"
    say governor "$(governor)"
    say driver "$(all "$cpu"/cpu[0-9]*/cpufreq/scaling_driver)"
    say preference "$(all "$cpu"/cpu[0-9]*/cpufreq/energy_performance_preference)"
    say frequency_min "$(all "$cpu"/cpu[0-9]*/cpufreq/scaling_min_freq)"
    say frequency_max "$(all "$cpu"/cpu[0-9]*/cpufreq/scaling_max_freq)"
    say turbo "$(turbo)"
    say smt "$(smt)"
    say supply "$(supply)"
    for z in "$S"/class/powercap/intel-rapl:*; do
        for limit in "$z"/constraint_*_power_limit_uw; do
            [ -r "$limit" ] || continue
            n=${limit##*/constraint_}
            say "power_limit.$(first "$z/name").$(first "$z/constraint_${n%%_*}_name")" "$(first "$limit")"
        done
    done
    say temperatures "$(temperature)"
    for f in "$S"/class/hwmon/hwmon*/fan*_input; do
        [ ! -r "$f" ] || say "fans.$(first "${f%/*}/name").${f##*/}" "$(first "$f")"
    done
    say load "$(load)"
    say renicers "$(renicers)"
    for d in "$S"/bus/usb/devices/*; do
        [ ! -r "$d/idVendor" ] || printf 'usb=%s:%s %s\n' "$(first "$d/idVendor")" "$(first "$d/idProduct")" "$(first "$d/product")"
    done
    # A kernel without loadable modules has no such file.
    [ ! -r "$P/modules" ] || while read -r module _; do printf 'modules=%s\n' "$module"; done <"$P/modules"
    if [ -z "${KDUEL_SYSFS:-}" ] && command -v systemctl >/dev/null 2>&1; then
        systemctl list-units --type=service --state=running --no-legend --plain 2>/dev/null |
            while read -r unit _; do printf 'services=%s\n' "$unit"; done
    fi
}

# outside NAME REQUIRED: succeeds, with a message, where a condition is not as required.
outside() {
    is=$($1)
    [ "$is" != "$2" ] || return 1
    echo "$1 is ${is:-unknown}, required is $2"
}

platform_profile() { first "$S/firmware/acpi/platform_profile"; }

# below NAME VALUE LIMIT: succeeds, with a message, where a number is not below its limit.
below() {
    [ -n "$2" ] && awk "BEGIN { exit !($2 < $3) }" && return 1
    echo "$1 is ${2:-unknown}, required is below $3"
}

# remember COMMAND: what is written to $RESTORE survives a crash. It runs all, and fails if any of them failed.
remember() {
    [ -s "$RESTORE.new" ] || echo "failed=0; trap 'exit \$failed' EXIT" >"$RESTORE.new"
    echo "$1 || failed=1" >>"$RESTORE.new" && cp "$RESTORE.new" "$RESTORE" && sync "$RESTORE"
}

# put FILE VALUE: change it, and know how to put it back.
put() {
    [ -w "$1" ] || { echo "$1 cannot be written"; return 1; }
    old=$(first "$1")
    [ "$old" != "$2" ] || return 0
    remember "echo '$old' >'$1'" || return 1
    echo "$2" >"$1" || { echo "$1 does not take $2"; return 1; }
}

restore() {
    [ -e "$RESTORE" ] || { rm -f "$RESTORE.new"; return 0; }
    sh "$RESTORE" && rm -f "$RESTORE" "$RESTORE.new"
}
