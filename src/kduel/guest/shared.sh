#!/bin/sh
# Several contenders in one boot, which take turns of a step or slice each: sh guest.sh OUT
# Their scripts run at the same time, each waiting for its turn (own_turns.sh), so that only one of them works at any moment.
OUT=$1
mkdir -p "$OUT"
turns=$(mktemp -d) || exit 2
trap 'rm -rf "$turns"' EXIT
mkfifo "$turns/done"
exec 3<>"$turns/done"
over=' '

# start N: the script of contender N, to its end.
start() {
    mkfifo "$turns/$1"
    (
        exec 4<>"$turns/$1"
        KDUEL_TURN=$turns/$1 KDUEL_DONE=$turns/done sh "$OUT/load-$1.sh" "$OUT/load-$1"
        echo "over $1" >&3
    ) &
}

# hear: the next message, in $word and $number.
hear() {
    read -r word number <&3
    [ "$word" != over ] || over="$over$number "
}

# turn N: let contender N go, and wait until it has ended its turn, or its script; then nobody else takes back what it set.
turn() {
    case $over in *" $1 "*) return ;; esac
    echo go 1<>"$turns/$1"
    hear
    while [ "$number" != "$1" ]; do hear; done
    [ "$word" != over ] || sh "$turns/undo-$1"
}

# finish N...: all turns are over, so that the scripts may end.
finish() {
    for number; do
        case $over in *" $number "*) ;; *) echo go 1<>"$turns/$number" ;; esac
    done
    wait
}
