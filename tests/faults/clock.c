/*
 * A library to preload that moves the time of day, and no other clock, by as many seconds as the file CLOCK_SHIFT has in it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t shift(void)
{
	const char *name = getenv("CLOCK_SHIFT");
	char text[32] = "";
	int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;

	if (file < 0)
		return 0;
	if (read(file, text, sizeof text - 1) < 0)
		text[0] = 0;
	close(file);
	return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int failed = (int)syscall(SYS_clock_gettime, clock, now);

	if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += shift();
	return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec exact;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &exact);
	now->tv_sec = exact.tv_sec;
	now->tv_usec = exact.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *into)
{
	struct timespec exact;

	clock_gettime(CLOCK_REALTIME, &exact);
	if (into)
		*into = exact.tv_sec;
	return exact.tv_sec;
}
