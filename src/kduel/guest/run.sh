#!/bin/busybox sh
# Runs the trial's script in the guest's own root, sends what it left over the results port, and switches off.
# Debian's static busybox runs its applets without starting a program, which an emulated guest is slow at.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb
exec </dev/null >/dev/console 2>&1

# One process mounts all that follows. #quick
mount() {                                               #quick
    type=$2 options=defaults                            #quick
    shift 2                                             #quick
    [ "$1" != -o ] || { options=$2 && shift 2; }        #quick
    echo "$1 $2 $type $options 0 0" >>/dev/kduel.mounts #quick
}                                                       #quick
hostname() { echo "$1" >/proc/sys/kernel/hostname; } #quick
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
# bpf's file system asks for a module, which no guest has, and modprobe takes as long as all else here to say so. #quick
modprobe=/proc/sys/kernel/modprobe loader=                              #quick
[ ! -e $modprobe ] || { read -r loader <$modprobe; echo >$modprobe; }   #quick
for fs in cgroup2:/sys/fs/cgroup tracefs:/sys/kernel/tracing debugfs:/sys/kernel/debug bpf:/sys/fs/bpf \
    securityfs:/sys/kernel/security; do
    [ ! -d "${fs#*:}" ] || mount -t "${fs%%:*}" none "${fs#*:}" 2>/dev/null
done
unset -f mount #quick
mount -a -T /dev/kduel.mounts #quick
[ ! -e $modprobe ] || echo "$loader" >$modprobe #quick
for link in fd: stdin:/0 stdout:/1 stderr:/2; do
    [ -e "/dev/${link%%:*}" ] || ln -s "/proc/self/fd${link#*:}" "/dev/${link%%:*}"
done
hostname kduel
ifconfig lo 127.0.0.1 up

fail() {
    echo "kduel: cannot boot: $*"
    busybox poweroff -f
}

# The results port is opened once and stays open: reopening a virtio port loses data. A board without virtio names a
# second serial line for it, or its console.
port=
read -r words </proc/cmdline
for word in $words; do
    case $word in kduel.results=*) port=/dev/${word#*=} ;; esac
done
if [ -n "$port" ]; then
    [ -c "$port" ] || fail "the results line $port is not there"
    [ "$port" = /dev/console ] || stty -F "$port" raw -echo 115200
fi
for _ in $(seq 200); do
    [ -z "$port" ] || break
    for p in /sys/class/virtio-ports/*; do
        name=
        read -r name 2>/dev/null <"$p/name"
        [ "$name" = kduel.results ] && port=/dev/${p##*/} && break 2
    done
    usleep 50000
done
[ -n "$port" ] || fail "the results port does not appear"
exec 3>"$port"

for d in /sys/block/vd*; do
    if ! [ -e "$d" ] || [ "$(cat "$d/serial")" != kduel-scratch ]; then continue; fi
    # noinit_itable: no lazy initialisation in the background of a measurement.
    mount -t ext4 -o noinit_itable,noatime "/dev/${d##*/}" /scratch || fail "mount the scratch disk, which takes CONFIG_EXT4_FS"
done
export KDUEL_SCRATCH=/scratch KDUEL_PROGRAMS=/kduel/programs KDUEL_CONSOLE=/dev/console KDUEL_WORK=/tmp/work
out=/run/out
mkdir -p $out
[ -z "${1-}" ] || echo "$1" >$out/script.sha256
echo "kduel: script"
read -r up _ </proc/uptime
echo "KDUEL READY $up" >&3
# In busybox's shell, too; its steps get the root's own.
sh /kduel/guest.sh $out >$out/script.log 2>&1 3>&-
status=$?
read -r up _ </proc/uptime
echo "KDUEL DONE $up $status" >&3
echo "kduel: script ended with $status"
# To name what was counted; an answer of the same length makes the same trial, whether they are wanted or not.
read -r symbols 2>/dev/null </kduel/symbols
case $symbols in
    yes) grep -i ' [tw] ' /proc/kallsyms >$out/kallsyms ;;
    all) cat /proc/kallsyms >$out/kallsyms ;;
esac
tar -C $out -cf /run/out.tar .
digest=$(sha256sum </run/out.tar)
# On the console the kernel is to be silent from here on, and letters go instead of bytes.
[ "$port" != /dev/console ] || dmesg -n 1
size=$(stat -c %s /run/out.tar 2>/dev/null || wc -c </run/out.tar)
echo "KDUEL BEGIN $size ${digest%% *}" >&3
if [ "$port" = /dev/console ]; then
    gzip -c /run/out.tar | base64 >&3
else
    cat /run/out.tar >&3
fi
# A virtio port queues up to 128 writes, and a guest that switches itself off takes along those that the host has not read
# yet. A write waits for a free place: after 150 repetitions of the end, the first one has been read.
case $port in
    */vport*) repetitions=150 ;;
    *) repetitions=1 ;;
esac
for _ in $(seq $repetitions); do printf '\nKDUEL END\n' >&3; done
# Nothing is written back: the scratch disk is thrown away, and all else lies in memory.
poweroff -nf
sleep 10
reboot -f
