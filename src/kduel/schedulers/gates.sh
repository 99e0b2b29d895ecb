# Scheduler, policy and knobs of a contender: start, look, stop. Sourced by the gates; state is kept in $sched_dir.
sched_dir=${KDUEL_SCHED_DIR:-/run/kduel-sched}
sched_sys=${KDUEL_SCHED_SYS:-/sys/kernel/sched_ext}
(umask 077; mkdir -p "$sched_dir")

# Why this trial cannot count, for kduel.schedulers.check: a name, then words.
sched_fail() {
    echo "failed $*"
    [ ! -s "$sched_dir/stderr" ] || tail -n 12 "$sched_dir/stderr" | cut -c 1-300 | sed 's/^/said /'
    sched_log
    rm -f "$sched_dir/ready"
    exit 1
}

# The kernel's own words about sched_ext since the contender began.
sched_log() {
    dmesg 2>/dev/null | grep 'sched_ext' | tail -n "+$(($(cat "$sched_dir/lines" 2>/dev/null || echo 0) + 1))" |
        tail -n 12 | cut -c 1-300 | sed 's/^/kernel /'
}

sched_state() { cat "$sched_sys/state" 2>/dev/null || echo absent; }

# sched_wait STATE SECONDS: until the state is that, at most so long; fails sooner where the process has ended.
sched_wait() {
    left=$(($2 * 5))
    while [ "$(sched_state)" != "$1" ]; do
        [ "$left" -gt 0 ] || return 1
        [ "$1" != enabled ] || [ ! -e "$sched_dir/ended" ] || return 1
        left=$((left - 1))
        sleep 0.2
    done
}

# sched_gone SECONDS: until the scheduler's process has ended, at most so long.
sched_gone() {
    left=$(($1 * 5))
    while [ ! -e "$sched_dir/ended" ]; do
        [ "$left" -gt 0 ] || return 1
        left=$((left - 1))
        sleep 0.2
    done
}

# sched_begin: a new contender, nothing of it done yet.
sched_begin() {
    rm -f "$sched_dir/ready" "$sched_dir/ended" "$sched_dir/pid" "$sched_dir/stderr" "$sched_dir/knobs" "$sched_dir/kept"
    dmesg 2>/dev/null | grep -c 'sched_ext' >"$sched_dir/lines"
    # The schedulers read the kernel's configuration there, and say a bare EINVAL where it is missing.
    config=/boot/config-$(uname -r)
    [ -e "$config" ] || [ -e /proc/config.gz ] || [ ! -r "${KDUEL_CONFIG:-/}" ] || [ ! -f "$KDUEL_CONFIG" ] ||
        { mkdir -p /boot && cp "$KDUEL_CONFIG" "$config"; }
}

# sched_start SECONDS PROGRAM [ARGUMENT...]: a sched_ext scheduler, and the kernel's word that it is at work.
sched_start() {
    limit=$1
    shift
    case $(sched_state) in
    absent) sched_fail "no-sched-ext this kernel has no sched_ext ($sched_sys is not there)" ;;
    disabled) ;;
    *) sched_fail "scheduler-in-the-way another scheduler is at work: $(cat "$sched_sys/root/ops" 2>/dev/null)" ;;
    esac
    # A supervisor of its own, so that the exit status is known to whichever shell asks.
    setsid sh -c '
        "$@" >"$0/stdout" 2>"$0/stderr" </dev/null &
        echo $! >"$0/pid"
        wait $!
        echo $? >"$0/ended"' "$sched_dir" "$@" >/dev/null 2>&1 </dev/null &
    sched_wait enabled "$limit" && return
    [ ! -e "$sched_dir/ended" ] ||
        sched_fail "scheduler-not-started $1 ended with status $(cat "$sched_dir/ended") before it was at work"
    sched_fail "scheduler-not-started $1 was not at work within $limit s (state $(sched_state))"
}

# sched_look: what the kernel says now, one fact a line.
sched_look() {
    echo "state $(sched_state)"
    for name in root/ops enable_seq nr_rejected switch_all; do
        [ ! -r "$sched_sys/$name" ] || echo "$name $(cat "$sched_sys/$name")"
    done
    if [ -e "$sched_dir/pid" ]; then
        pid=$(cat "$sched_dir/pid")
        if [ -e "$sched_dir/ended" ]; then
            echo "process $pid ended $(cat "$sched_dir/ended")"
        elif kill -0 "$pid" 2>/dev/null; then
            echo "process $pid alive"
        else
            echo "process $pid gone"
        fi
    fi
    [ ! -e "$sched_dir/kept" ] || while read -r path word; do
        echo "knob $path $(sched_value "$path" "$word")"
    done <"$sched_dir/kept"
    sched_log
}

# sched_value FILE [FEATURE]: what a knob is now, in one line; of choices the one in brackets or, of the preemption modes,
# in parentheses; of the features one.
sched_value() {
    # Blanks of any kind are the same: a kernel prints tabs where a person writes spaces.
    value=$(echo $(cat "$1" 2>/dev/null))
    case $1 in */preempt)
        value=${value#*"("}
        value=${value%%")"*}
        ;;
    esac
    case $value in *"["*"]"*)
        value=${value#*"["}
        value=${value%%"]"*}
        ;;
    esac
    case "${2:+ $value }" in
    '') echo "$value" ;;
    *" $2 "*) echo "$2" ;;
    *" NO_$2 "*) echo "NO_$2" ;;
    esac
}

# sched_stop: end the scheduler and wait until the kernel has taken over again; what the contender's scheduler left at
# work all the same (another one in its place, say) the kernel throws out.
sched_stop() {
    if [ -e "$sched_dir/pid" ]; then
        kill -TERM "$(cat "$sched_dir/pid")" 2>/dev/null
        if [ -e "$sched_dir/ended" ] || ! sched_wait disabled 30; then
            kill -KILL "$(cat "$sched_dir/pid")" 2>/dev/null
            [ "$(sched_state)" = disabled ] || echo S >/proc/sysrq-trigger
            sched_wait disabled 30 || echo "failed scheduler-does-not-end the state is still $(sched_state)"
        fi
        # A process outlives its scheduler, lavd's by seconds, and would write its end into the next one's records.
        sched_gone 30 || kill -KILL "$(cat "$sched_dir/pid")" 2>/dev/null
        sched_gone 5 || echo "failed scheduler-does-not-end its process is still there"
        rm -f "$sched_dir/pid"
    fi
    [ ! -e "$sched_dir/knobs" ] || while read -r path value; do
        echo "$value" >"$path" || echo "failed knob-not-restored $path"
    done <"$sched_dir/knobs"
    rm -f "$sched_dir/knobs" "$sched_dir/kept" "$sched_dir/ready"
}

# sched_writable FILE: fails where the kernel has no such file, or one that is for reading only.
sched_writable() {
    [ -e "$1" ] || sched_fail "no-such-knob this kernel has no $1"
    [ -w "$1" ] || sched_fail "knob-refused $1 cannot be written"
}

# sched_knob FILE VALUE: set it, keeping what was there, and read it back.
sched_knob() {
    sched_writable "$1"
    echo "$1 $(sched_value "$1")" | cat - "$sched_dir/knobs" 2>/dev/null >"$sched_dir/knobs.new"
    mv "$sched_dir/knobs.new" "$sched_dir/knobs"
    echo "$2" >"$1" 2>"$sched_dir/why" || sched_fail "knob-refused $1 = $2: $(cat "$sched_dir/why")"
    echo "$1" >>"$sched_dir/kept"
    is=$(sched_value "$1")
    # The kernel may print a number in another base than it was written in.
    case $is,$2 in 0x*,[0-9]*) [ "$((is))" != "$(($2))" ] || return 0 ;; esac
    [ "$is" = "$(echo $2)" ] || sched_fail "knob-not-set $1 is $(cat "$1"), not $2"
}

# sched_feature FILE WORD: a scheduler feature, NO_ before it to switch it off.
sched_feature() {
    sched_writable "$1"
    case $2 in NO_*) other=${2#NO_} ;; *) other=NO_$2 ;; esac
    case " $(cat "$1") " in
    *" $2 "*) was=$2 ;;
    *" $other "*) was=$other ;;
    *) sched_fail "no-such-feature this kernel's scheduler has no feature ${2#NO_}; it has: $(cat "$1")" ;;
    esac
    echo "$1 $was" | cat - "$sched_dir/knobs" 2>/dev/null >"$sched_dir/knobs.new"
    mv "$sched_dir/knobs.new" "$sched_dir/knobs"
    echo "$2" >"$1" || sched_fail "knob-refused $1 = $2"
    echo "$1 ${2#NO_}" >>"$sched_dir/kept"
    [ "$(sched_value "$1" "${2#NO_}")" = "$2" ] || sched_fail "knob-not-set $1 has not $2"
}

# sched_preempt MODE: whether the kernel took the command line's preempt=MODE.
sched_preempt() {
    modes=$(cat /sys/kernel/debug/sched/preempt 2>/dev/null) ||
        sched_fail "no-preempt-mode this kernel does not tell its preemption mode (no PREEMPT_DYNAMIC, or no debugfs)"
    case $modes in *"($1)"*) ;; *) sched_fail "preempt-not-set preempt=$1 was not taken; the kernel's modes: $modes" ;; esac
    echo /sys/kernel/debug/sched/preempt >>"$sched_dir/kept"
}

# sched_ready: all of the above is done. Every gate before a step asks for it.
sched_ready() { : >"$sched_dir/ready"; }

sched_before() {
    [ -e "$sched_dir/ready" ] || { echo "failed not-ready the contender's setup failed before"; exit 1; }
    sched_look
}
