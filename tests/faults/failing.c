/*
 * A library to preload that counts the calls by which a process writes below given directories, and makes one of them
 * fail. Only the process itself is concerned, not those that it starts.
 *
 * FAULT_PLACES: beginnings of paths, separated by ":". FAULT_LOG: a file with a line for each call, as strace has it:
 * NAME(PATH), with the number of calls of that name before it. FAULT_CALL: NAME:NUMBER:ERRNO, the call that fails.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const names[] = {"write",    "pwrite64",        "rename", "mkdir",  "fsync", "ftruncate", "fallocate",
				    "sendfile", "copy_file_range", "chmod",  "fchmod", "flock", "openat",    "fdatasync",
				    "close"};
enum {
	WRITE, PWRITE, RENAME, MKDIR, FSYNC, FTRUNCATE, FALLOCATE, SENDFILE, COPY, CHMOD, FCHMOD, FLOCK, OPENAT, FDATASYNC,
	CLOSE, KINDS
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner;
static int log_handle = -1, chosen = -1, chosen_error;
static unsigned long counts[KINDS], chosen_number;
static char *places;

__attribute__((constructor)) static void begin(void)
{
	const char *file = getenv("FAULT_LOG"), *given = getenv("FAULT_PLACES"), *call = getenv("FAULT_CALL");
	char name[32];

	if (!file || !given)
		return;
	owner = getpid();
	places = strdup(given);
	log_handle = fcntl(syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644),
			   F_DUPFD_CLOEXEC, 500);
	if (call && sscanf(call, "%31[^:]:%lu:%d", name, &chosen_number, &chosen_error) == 3)
		for (int kind = 0; kind < KINDS; kind++)
			if (!strcmp(names[kind], name))
				chosen = kind;
	unsetenv("LD_PRELOAD");
}

static int inside(const char *path)
{
	const char *place = places;

	while (place && *place) {
		size_t length = strcspn(place, ":");

		if (!strncmp(path, place, length))
			return 1;
		place += length + (place[length] == ':');
	}
	return 0;
}

/* Whether this call is to fail; errno is set then. */
static int fails(int kind, const char *path)
{
	char line[4400];
	int hit, length;

	if (log_handle < 0 || getpid() != owner || !path || !inside(path))
		return 0;
	pthread_mutex_lock(&lock);
	hit = ++counts[kind] == chosen_number && kind == chosen;
	length = snprintf(line, sizeof line, "%s(%.4000s) %lu%s\n", names[kind], path, counts[kind],
			  hit ? " (INJECTED)" : "");
	syscall(SYS_write, log_handle, line, (size_t)length);
	pthread_mutex_unlock(&lock);
	if (hit)
		errno = chosen_error;
	return hit;
}

static int fails_of(int kind, int handle)
{
	char link[64], path[4096];
	ssize_t length;

	if (log_handle < 0)
		return 0;
	snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
	length = readlink(link, path, sizeof path - 1);
	if (length < 0)
		return 0;
	path[length] = 0;
	return fails(kind, path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int handle, const void *data, size_t size)
{
	return fails_of(WRITE, handle) ? -1 : NEXT(write)(handle, data, size);
}

ssize_t pwrite64(int handle, const void *data, size_t size, off64_t at)
{
	return fails_of(PWRITE, handle) ? -1 : NEXT(pwrite64)(handle, data, size, at);
}

int rename(const char *old, const char *new)
{
	return fails(RENAME, new) ? -1 : NEXT(rename)(old, new);
}

int mkdir(const char *path, mode_t mode)
{
	return fails(MKDIR, path) ? -1 : NEXT(mkdir)(path, mode);
}

int fsync(int handle)
{
	return fails_of(FSYNC, handle) ? -1 : NEXT(fsync)(handle);
}

int fdatasync(int handle)
{
	return fails_of(FDATASYNC, handle) ? -1 : NEXT(fdatasync)(handle);
}

/* Of a file that was written, since a disk may tell only then; the descriptor is gone all the same. */
int close(int handle)
{
	int before = errno, access = log_handle < 0 ? -1 : fcntl(handle, F_GETFL);
	int hit = access >= 0 && (access & O_ACCMODE) != O_RDONLY && fails_of(CLOSE, handle);
	int reason = errno;

	errno = before;
	if (!hit)
		return NEXT(close)(handle);
	NEXT(close)(handle);
	errno = reason;
	return -1;
}

int ftruncate64(int handle, off64_t size)
{
	return fails_of(FTRUNCATE, handle) ? -1 : NEXT(ftruncate64)(handle, size);
}

/* Returns the error instead of setting errno. */
int posix_fallocate64(int handle, off64_t at, off64_t size)
{
	return fails_of(FALLOCATE, handle) ? errno : NEXT(posix_fallocate64)(handle, at, size);
}

ssize_t sendfile64(int out, int in, off64_t *at, size_t size)
{
	return fails_of(SENDFILE, out) ? -1 : NEXT(sendfile64)(out, in, at, size);
}

ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size, unsigned int flags)
{
	return fails_of(COPY, out) ? -1 : NEXT(copy_file_range)(in, from, out, to, size, flags);
}

int chmod(const char *path, mode_t mode)
{
	return fails(CHMOD, path) ? -1 : NEXT(chmod)(path, mode);
}

int fchmod(int handle, mode_t mode)
{
	return fails_of(FCHMOD, handle) ? -1 : NEXT(fchmod)(handle, mode);
}

int flock(int handle, int operation)
{
	return fails_of(FLOCK, handle) ? -1 : NEXT(flock)(handle, operation);
}

/* Only those that may make a file. */
#define OPENS(name, before, ...)                                                                                       \
	int name before                                                                                                \
	{                                                                                                              \
		mode_t mode = 0;                                                                                       \
		va_list more;                                                                                          \
                                                                                                                       \
		if (flags & (O_CREAT | O_TMPFILE)) {                                                                   \
			va_start(more, flags);                                                                         \
			mode = va_arg(more, mode_t);                                                                   \
			va_end(more);                                                                                  \
		}                                                                                                      \
		if (flags & O_CREAT && fails(OPENAT, path))                                                            \
			return -1;                                                                                     \
		return NEXT(name)(__VA_ARGS__, mode);                                                                  \
	}

OPENS(open, (const char *path, int flags, ...), path, flags)
OPENS(open64, (const char *path, int flags, ...), path, flags)
OPENS(openat, (int at, const char *path, int flags, ...), at, path, flags)
OPENS(openat64, (int at, const char *path, int flags, ...), at, path, flags)
