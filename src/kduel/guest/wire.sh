# One end of the private link of two guests, in head.sh's shell. The program `peer` runs its standard input as a script in the peer's
# shell: it gives its output, both streams in one, and ends with its status.

cat >"$KDUEL_PROGRAMS/peer" <<'KDUEL_PEER_PROGRAM'
#!/bin/sh
answer=$(mktemp) || exit
trap 'rm -f "$answer"' EXIT
busybox nc -w 10 "$KDUEL_PEER" 7 >"$answer" 2>/dev/null
end=$(tail -n 1 "$answer")
case $end in
    "KDUEL PEER "[0-9]*)
        head -c "-$((${#end} + 2))" "$answer"
        exit "${end##* }"
        ;;
esac
echo "the peer does not answer" >&2
exit 97
KDUEL_PEER_PROGRAM
chmod 755 "$KDUEL_PROGRAMS/peer"

# join ADDRESS/LENGTH: bring this guest's end of the link up. IPv6 would send packets of its own.
join() {
    load virtio_net
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ ! -e /sys/class/net/eth0 ] || break
        sleep 0.2
    done
    echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6
    busybox ip address add "$1" dev eth0
    busybox ip link set eth0 up
}

# leave_peer: the trial's steps are over, and the peer ends, too.
leave_peer() { echo 'kill "$(cat /run/kduel-peer)"' | "$timeout" 30 peer || lose_peer "$link_hung"; }
