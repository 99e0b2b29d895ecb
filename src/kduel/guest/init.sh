#!/bin/busybox sh
# The first process of a KDuel guest: loads the modules, mounts the root, and goes over to it.
export PATH=/bin
bb=/bin/busybox

fail() {
    echo "kduel: cannot boot: $*" >/dev/console
    $bb poweroff -f
}

$bb mount -t devtmpfs dev /dev || $bb mount -t tmpfs dev /dev
$bb mount -t proc proc /proc
$bb mount -t sysfs sys /sys
exec </dev/null >/dev/console 2>&1
echo "kduel: init"

while read -r module; do
    # One that is for another CPU refuses to load; what is truly missing shows below.
    $bb insmod "$module"
done </kduel/modules

# The disk with the serial number $1, once it is there; at most 10 seconds.
disk() {
    for _ in $($bb seq 200); do
        for d in /sys/block/vd*; do
            [ "$($bb cat "$d/serial" 2>/dev/null)" = "$1" ] && echo "/dev/${d##*/}" && return
        done
        $bb usleep 50000
    done
    return 1
}

root=$(disk kduel-root) || fail "the root disk does not appear"
$bb mkdir -p /ro /rw /new
$bb mount -t squashfs -o ro "$root" /ro || fail "mount $root"
$bb mount -t tmpfs -o mode=755 rw /rw || fail "mount tmpfs"
$bb mkdir -p /rw/upper /rw/work
$bb mv /kduel /boot /rw/upper/
$bb mount -t overlay -o lowerdir=/ro,upperdir=/rw/upper,workdir=/rw/work overlay /new || fail "mount overlay"
for d in dev proc sys; do
    $bb mount --move "/$d" "/new/$d" || fail "move /$d"
done
exec $bb switch_root /new /kduel/run
fail "switch_root"
