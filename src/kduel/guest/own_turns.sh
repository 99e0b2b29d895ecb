
# Contenders that share a boot and take turns (shared.sh): each sets what is its own for a step or slice alone, and takes it back.

# keep_for_turns: standard input is the setup's script; $undo is the one that takes back what it sets.
keep_for_turns() {
    cat >"$WORK/setup.sh"
    [ -z "${KDUEL_DONE:-}" ] || echo "ready ${KDUEL_TURN##*/}" >"$KDUEL_DONE"
}

# begin_turn: wait for it, where the boot is shared, and set what is the contender's own.
begin_turn() {
    [ -z "${KDUEL_TURN:-}" ] || read -r _ <"$KDUEL_TURN"
    setup <"$WORK/setup.sh"
}

# await_others: until all have ended their last turns. What comes after would disturb them.
await_others() { [ -z "${KDUEL_TURN:-}" ] || read -r _ <"$KDUEL_TURN"; }

end_turn() {
    "$timeout" -k 5 120 "$shell" -c "$undo" >&2 </dev/null
    [ -z "${KDUEL_DONE:-}" ] || echo "turn ${KDUEL_TURN##*/}" >"$KDUEL_DONE"
}
