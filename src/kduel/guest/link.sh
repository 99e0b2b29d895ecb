# What the trial's machine does about its peer, in head.sh's shell; the program `peer` runs its standard input there.

# answers SECONDS: whether the peer runs a script at all; else why not is in a file.
answers() {
    echo : | "$timeout" "$1" peer >"$WORK/peer.error" 2>&1 && return
    [ $? != 124 ] || echo "no answer within $1 s" >>"$WORK/peer.error"
    return 1
}

# lose_peer STATUS: end the trial.
lose_peer() {
    tell "the peer does not answer"
    cp "$WORK/peer.error" "$OUT/environment/peer.error"
    end
    exit "$1"
}

# meet_peer: wait until the peer answers.
meet_peer() {
    look
    limit=$((now + link_bound * 100))
    until answers 20; do
        look
        [ "$now" -lt "$limit" ] || lose_peer "$link_late"
        sleep 0.2
    done
}

# watch_peer: ask a peer now and then, from a process beside the step that begins, and end the step where it does not answer.
# A peer that hangs in a step would be noticed at the step's own bound alone. Short steps never see the question.
watch_peer() {
    {
        trap 'kill "$!"; exit' TERM
        while sleep "$link_look" & wait "$!"; do
            answers "$link_patience" && continue
            for stat in /proc/[0-9]*/stat; do
                read -r line <"$stat" || continue
                case $line in *"(timeout) "?" $$ "*) kill "${line%% *}" ;; esac
            done
            exit
        done
    } >/dev/null 2>&1 </dev/null &
    watcher=$!
}

# check_peer: whether the last step failed because the peer does not answer any more: then nothing else is tried.
check_peer() {
    kill "$watcher" 2>/dev/null
    [ "$status" = 0 ] || answers 30 || lose_peer "$link_hung"
}
