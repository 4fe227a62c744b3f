/* The functions that the stub stands in for, which are those that the hook does: see late.rs,
 * first_thread.rs and starting.rs there. The assembler reads this file too. */

#ifndef STAND_INS_H
#define STAND_INS_H

/* X(index, name, what it returns where there is no such function) */
#define STAND_INS(X)                                                                             \
    X(0, pthread_create, 11)                                                                     \
    X(1, thrd_create, 2)                                                                         \
    X(2, vfork, -1)                                                                              \
    X(3, posix_spawn, 38)                                                                        \
    X(4, posix_spawnp, 38)                                                                       \
    X(5, system, -1)                                                                             \
    X(6, popen, 0)                                                                               \
    X(7, execve, -1)                                                                             \
    X(8, execv, -1)                                                                              \
    X(9, pthread_condattr_setclock, 38)                                                          \
    X(10, sem_init, -1)

#define STAND_IN_COUNT 11
/* The first of them begin threads. */
#define THREAD_STARTER_COUNT 2

#endif
