/* Takes and lets go of a GIL by the calls by which CPython does (Python/ceval_gil.c), for those who have
 * no CPython of musl. It has what the hook knows an interpreter by, and is none.
 *
 *     gil_of_musl TURNS
 *
 * Two threads compute, and let go when the other has asked, until one has done so TURNS times. Then the
 * main thread says as JSON how often each has taken the GIL, by its kernel's id, and how long all that
 * took. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { INTERVAL_NS = 5000000, THREADS = 2 };

/* The order of the first four is CPython's, and the hook relies on it. */
struct gil {
    pthread_cond_t cond;
    pthread_mutex_t mutex;
    pthread_cond_t switch_cond;
    pthread_mutex_t switch_mutex;
    int locked, last_holder, asked;
    unsigned long switches;
};

struct {
    /* No cookie, so none of the offsets that CPython 3.13 begins with. */
    unsigned long words[4];
    struct gil gil;
} _PyRuntime;

static struct gil *const gil = &_PyRuntime.gil;
static long taken[THREADS + 1], tids[THREADS + 1];
static int turns;
/* Written with the GIL, as all that Python code writes. */
static volatile int is_over;

const char *Py_GetVersion(void) { return "3.13.0 (of musl)"; }
int Py_IsInitialized(void) { return gil->locked; }

static void create_gil(void) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&gil->mutex, NULL);
    pthread_mutex_init(&gil->switch_mutex, NULL);
    pthread_cond_init(&gil->cond, &monotonic);
    pthread_cond_init(&gil->switch_cond, &monotonic);
}

static long now_ns(void) {
    struct timespec it;
    clock_gettime(CLOCK_MONOTONIC, &it);
    return it.tv_sec * 1000000000 + it.tv_nsec;
}

static void take_gil(int thread) {
    pthread_mutex_lock(&gil->mutex);
    while (gil->locked) {
        unsigned long before = gil->switches;
        long until_ns = now_ns() + INTERVAL_NS;
        struct timespec deadline = {until_ns / 1000000000, until_ns % 1000000000};
        int is_late = pthread_cond_timedwait(&gil->cond, &gil->mutex, &deadline) != 0;
        if (is_late && gil->locked && gil->switches == before)
            __atomic_store_n(&gil->asked, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_lock(&gil->switch_mutex);
    gil->locked = 1;
    if (gil->last_holder != thread) {
        gil->last_holder = thread;
        gil->switches++;
    }
    pthread_cond_signal(&gil->switch_cond);
    pthread_mutex_unlock(&gil->switch_mutex);
    __atomic_store_n(&gil->asked, 0, __ATOMIC_RELAXED);
    taken[thread]++;
    tids[thread] = syscall(SYS_gettid);
    pthread_mutex_unlock(&gil->mutex);
}

static void drop_gil(int thread) {
    int is_forced = __atomic_load_n(&gil->asked, __ATOMIC_RELAXED);
    pthread_mutex_lock(&gil->mutex);
    gil->locked = 0;
    pthread_cond_signal(&gil->cond);
    pthread_mutex_unlock(&gil->mutex);
    if (!is_forced)
        return;
    pthread_mutex_lock(&gil->switch_mutex);
    if (gil->last_holder == thread) {
        __atomic_store_n(&gil->asked, 0, __ATOMIC_RELAXED);
        pthread_cond_wait(&gil->switch_cond, &gil->switch_mutex);
    }
    pthread_mutex_unlock(&gil->switch_mutex);
}

static void *compute(void *number) {
    int thread = (int)(long)number;
    take_gil(thread);
    for (int done = 0; done < turns && !is_over; done++) {
        while (!__atomic_load_n(&gil->asked, __ATOMIC_RELAXED) && !is_over)
            ;
        drop_gil(thread);
        take_gil(thread);
    }
    is_over = 1;
    drop_gil(thread);
    return NULL;
}

int main(int count, char **words) {
    pthread_t threads[THREADS];
    turns = count > 1 ? atoi(words[1]) : 10;
    long started_ns = now_ns();
    create_gil();
    take_gil(0);
    for (long thread = 1; thread <= THREADS; thread++)
        pthread_create(&threads[thread - 1], NULL, compute, (void *)thread);
    drop_gil(0);
    for (int thread = 0; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
    printf("{\"taken\": {");
    for (int thread = 0; thread <= THREADS; thread++)
        printf("%s\"%ld\": %ld", thread ? ", " : "", tids[thread], taken[thread]);
    printf("}, \"took_ns\": %ld}\n", now_ns() - started_ns);
    return 0;
}
