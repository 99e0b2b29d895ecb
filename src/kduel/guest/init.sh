#!/bin/busybox sh
# The first process of a KDuel guest: loads the modules, mounts the root, and goes over to it.
export PATH=/bin

fail() {
    echo "kduel: cannot boot: $*"
    /bin/busybox poweroff -f
}

# Once /proc is there, busybox finds its other applets in itself.
/bin/busybox mount -t proc proc /proc
mount -t devtmpfs dev /dev
mount -t sysfs sys /sys
exec </dev/null >/dev/console 2>&1
echo "kduel: init"

while read -r module; do
    # One that is for another CPU refuses to load; what is truly missing shows below.
    insmod "$module"
done </kduel/modules

# A machine may do without disks: the root is then this RAM disk, or what lies in memory. Or the kernel has mounted it
# itself, for reading: which trial's script it holds is told to those who made it.
root=
read -r words </proc/cmdline
for word in $words; do
    case $word in kduel.root=*) root=${word#*=} ;; esac
done
case $root in
    ram)
        mkdir -p /run /tmp /scratch
        exec /kduel/run
        ;;
    mounted)
        mount -t tmpfs scratch /scratch || fail "mount tmpfs"
        exec /kduel/run "$(sha256sum </kduel/guest.sh)"
        ;;
esac

# The disk with the serial number $1, once it is there; at most 10 seconds.
disk() {
    for _ in $(seq 200); do
        for d in /sys/block/vd*; do
            [ "$(cat "$d/serial" 2>/dev/null)" = "$1" ] && echo "/dev/${d##*/}" && return
        done
        usleep 50000
    done
    return 1
}

[ -n "$root" ] || root=$(disk kduel-root) || fail "the root disk does not appear"
mkdir -p /ro /rw /new
mount -t squashfs -o ro "$root" /ro || fail "mount $root"
mount -t tmpfs -o mode=755 rw /rw || fail "mount tmpfs"
mkdir -p /rw/upper /rw/work
ln /bin/busybox /kduel/busybox #quick
mv /kduel /boot /rw/upper/
mount -t overlay -o lowerdir=/ro,upperdir=/rw/upper,workdir=/rw/work overlay /new || fail "mount overlay"
for d in dev sys proc; do
    mount --move "/$d" "/new/$d" || fail "move /$d"
done
# The root has the same busybox, but would have to read and decompress it. #quick
[ ! -e /rw/upper/kduel/busybox ] || exec /bin/busybox switch_root /new /kduel/busybox sh /kduel/run #quick
exec /bin/busybox switch_root /new /kduel/run
