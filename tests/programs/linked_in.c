/* A program that is linked with a libpython, as python-build-standalone's interpreters are with
 * OpenSSL, SQLite and Tcl: what it calls itself goes through the same slots as what the
 * interpreter calls.
 *
 * It is a `python` whose standard library is in $LINKED_HOME, and has threads of its own from before the interpreter's beginning to its end.
 * They use what looks like a GIL and is none: a condition variable, a mutex and another condition
 * variable in a row, made in this order, of the monotonic clock, with waits of 5 ms. Two threads
 * take turns at one that is static; one thread makes one on the heap again and again, as a library
 * does for each object, and waits for nobody. At the end the program says whether the two have
 * taken all turns there were.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int Py_BytesMain(int, char **);

enum { TURNS = 100, MADE = 10, MS = 5 };

struct lookalike {
    pthread_cond_t cond;
    pthread_mutex_t mutex;
    pthread_cond_t switch_cond;
    pthread_mutex_t switch_mutex;
};

static struct lookalike shared;
static pthread_condattr_t monotonic;
static atomic_int is_over;
static atomic_long turns, made;

static void make(struct lookalike *it) {
    pthread_mutex_init(&it->mutex, NULL);
    pthread_mutex_init(&it->switch_mutex, NULL);
    pthread_cond_init(&it->cond, &monotonic);
    pthread_cond_init(&it->switch_cond, &monotonic);
}

static int wait_a_moment(pthread_cond_t *cond, pthread_mutex_t *mutex) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += MS * 1000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    return pthread_cond_timedwait(cond, mutex, &until);
}

/* Takes every second turn, and returns how many. */
static void *take_turns(void *mine) {
    long taken = 0;
    for (int is_last = 0; !is_last; taken++) {
        pthread_mutex_lock(&shared.mutex);
        while (turns % 2 != (long)mine) wait_a_moment(&shared.cond, &shared.mutex);
        turns++;
        is_last = is_over && turns >= TURNS;
        pthread_cond_signal(&shared.cond);
        pthread_mutex_unlock(&shared.mutex);
        pthread_mutex_lock(&shared.switch_mutex);
        pthread_cond_signal(&shared.switch_cond);
        pthread_mutex_unlock(&shared.switch_mutex);
    }
    return (void *)taken;
}

static void *make_more(void *unused) {
    while (!is_over || made < MADE) {
        struct lookalike *it = malloc(sizeof *it);
        make(it);
        pthread_mutex_lock(&it->mutex);
        wait_a_moment(&it->cond, &it->mutex);
        pthread_cond_signal(&it->switch_cond);
        pthread_mutex_unlock(&it->mutex);
        pthread_cond_destroy(&it->cond);
        pthread_cond_destroy(&it->switch_cond);
        free(it);
        made++;
    }
    return unused;
}

int main(int count, char **words) {
    pthread_t threads[3];
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    make(&shared);
    pthread_create(&threads[0], NULL, take_turns, (void *)0);
    pthread_create(&threads[1], NULL, take_turns, (void *)1);
    pthread_create(&threads[2], NULL, make_more, NULL);
    while (!turns || !made) sched_yield();
    /* Not from the beginning: who starts it may be another Python. */
    setenv("PYTHONHOME", getenv("LINKED_HOME"), 1);
    int status = Py_BytesMain(count, words);
    is_over = 1;
    void *taken[3];
    for (int index = 0; index < 3; index++) pthread_join(threads[index], &taken[index]);
    int are_all = (long)taken[0] + (long)taken[1] == turns;
    printf("%s\n", are_all ? "all turns taken" : "turns are missing");
    return status;
}
