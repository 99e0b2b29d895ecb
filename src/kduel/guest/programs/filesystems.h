/* Operations of kbench on file systems in memory: tmpfs, and ext4 on a RAM disk. */
#ifndef KDUEL_FILESYSTEMS_H
#define KDUEL_FILESYSTEMS_H

#include "ext4_image.h"
#include "kmodules.h"

#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#define RAM_DISK "/dev/ram0"

enum { TMPFS, EXT4 };
static const char *const mount_point = "kbench.mount";
static char mounted_file[64] = "kbench.mount/file";
static int mount_claim;

/* On a new RAM disk; one that somebody uses is left alone. */
static void fill_ram_disk(void) {
    static char image[EXT4_WRITTEN], there[EXT4_WRITTEN];
    uint64_t size = 0;
    load_module("brd", "rd_nr=1 rd_size=16384");
    int fd = open(RAM_DISK, O_RDWR | O_EXCL | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) errno = ENODEV;
    need(fd, RAM_DISK " (module brd)");
    need(ioctl(fd, BLKGETSIZE64, &size), RAM_DISK);
    if (size < EXT4_SIZE) errno = ENODEV, die(RAM_DISK " has less than 16 MiB");
    for (size_t i = 0; i < sizeof ext4_parts / sizeof *ext4_parts; i++)
        for (unsigned j = 0; j < ext4_parts[i].length; j++)
            image[ext4_parts[i].at + j] = ext4_parts[i].bytes ? ext4_parts[i].bytes[j] : (char)ext4_parts[i].fill;
    if (pread(fd, there, sizeof there, 0) != sizeof there) die("reading " RAM_DISK);
    enum { SUPERBLOCK = 1024, UUID = SUPERBLOCK + 104, UUID_BYTES = 16 };
    int empty = 1;
    for (size_t i = 0; i < sizeof there; i++) empty &= !there[i];
    if (!empty && memcmp(there + UUID, image + UUID, UUID_BYTES)) errno = EBUSY, die(RAM_DISK " holds somebody's data");
    if (pwrite(fd, image, sizeof image, 0) != sizeof image) die("writing " RAM_DISK);
    need(fsync(fd), RAM_DISK);
    close(fd);
}

static void close_mount(void) {
    umount(mount_point);
    rmdir(mount_point);
    close(mount_claim);
}
static void open_mount(long argument) {
    int on_disk = argument == EXT4;
    /* A file system takes the best checksum that there is when it is mounted. Real machines load what the processor has;
     * without it half of ext4-create is crc32c, or not, where another operation has loaded it. */
    if (on_disk) load_module("crc32c_intel", ""), load_module("ext4", ""), fill_ram_disk();
    need(unshare(CLONE_NEWNS), "a mount namespace");
    need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "a private mount namespace");
    mount_claim = claim_directory(mount_point, 0700);
    if (mount(on_disk ? RAM_DISK : "kbench", mount_point, on_disk ? "ext4" : "tmpfs", 0, on_disk ? "noinit_itable" : NULL)) {
        int why = errno;
        rmdir(mount_point);
        errno = why, die(on_disk ? "mounting ext4" : "mounting tmpfs");
    }
    /* A kernel without it mounts a ramfs under this name. */
    struct statfs found;
    need(statfs(mount_point, &found), mount_point);
    if (!on_disk && found.f_type != TMPFS_MAGIC) close_mount(), errno = ENODEV, die("tmpfs");
}
static void create_mounted(void) {
    int fd = (int)need(open(mounted_file, O_WRONLY | O_CREAT | O_EXCL, 0600), mounted_file);
    close(fd);
    need(unlink(mounted_file), "unlink");
}
static void sync_mounted(void) {
    static const char chunk[4096];
    int fd = (int)need(open(mounted_file, O_WRONLY | O_CREAT | O_EXCL, 0600), mounted_file);
    if (write(fd, chunk, sizeof chunk) != sizeof chunk) die("write");
    need(fsync(fd), "fsync");
    close(fd);
    need(unlink(mounted_file), "unlink");
}

#endif
