# The one step of a peer: it runs each script that the trial's guest sends, and answers with its output and its status.
[ -e /sys/class/net/eth0 ] || { echo "the link's network card does not appear: the peer's kernel lacks virtio_net" >&2; exit 1; }
cat >answer <<'KDUEL_ANSWER'
script=$(mktemp) || exit
cat >"$script"
sh -e "$script" </dev/null 2>&1
status=$?
rm -f "$script"
printf '\nKDUEL PEER %s\n' "$status"
KDUEL_ANSWER
# busybox ignores the end of its children, and so would they of theirs; by its path it runs the root's env and not its own.
busybox nc -ll -p 7 -e /usr/bin/env --default-signal=CHLD /bin/sh "$PWD/answer" &
echo $! >/run/kduel-peer
wait $! || :
