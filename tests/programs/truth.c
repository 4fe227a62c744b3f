/* Clocks for programs whose GIL waits and holds are known: called through ctypes, with the GIL
 * kept (PyDLL) or released (CDLL), so that a time is taken at a known side of an acquire. */
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t ns_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void)
{
    return ns_of(CLOCK_MONOTONIC);
}

/* The time, in ns of CLOCK_MONOTONIC. */
uint64_t clock_ns(void)
{
    return now_ns();
}

/* The kernel's id of the calling thread, which Python tells from 3.8 on. */
uint32_t thread_id(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

/* Sleeps for `us` microseconds; stores when that began and ended. */
void hold(uint32_t us, uint64_t *began, uint64_t *ended)
{
    *began = now_ns();
    usleep(us);
    *ended = now_ns();
}

/* Computes for `us` microseconds of the thread's own CPU time; stores when that began and ended. */
void compute(uint32_t us, uint64_t *began, uint64_t *ended)
{
    *began = now_ns();
    uint64_t until = ns_of(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)us * 1000u;
    while (ns_of(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
    *ended = now_ns();
}

/* Writes one byte. */
int wake(int fd)
{
    return write(fd, "x", 1) == 1;
}

/* Reads one byte and returns the time after that, 0 at the end of the file. */
uint64_t woken(int fd)
{
    char byte;
    return read(fd, &byte, 1) == 1 ? now_ns() : 0;
}
