/* Calls everything that the stub stands in for, and says what came of it. With MAY_OPEN the stub opens
 * the hook in it, if something is asked. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#ifdef MAY_OPEN
/* By such a reference the stub knows that an interpreter may come. */
void *(*volatile reference)(const char *, int) = dlopen;
#endif

static void *posix_thread(void *argument) { return argument; }
static int c11_thread(void *argument) { return *(int *)argument; }

static void said(const char *name, int result) {
    printf("%s %d\n", name, result);
    fflush(stdout);
}

static int status_of(pid_t process) {
    int status;
    if (waitpid(process, &status, 0) != process)
        return -1;
    return WEXITSTATUS(status);
}

int main(void) {
    char *words[] = {"sh", "-c", "exit 7", NULL};
    int five = 5, result;
    void *returned;
    char line[16] = "";
    pid_t process;
    pthread_t thread;
    thrd_t other;
    sem_t sem;
    pthread_condattr_t attributes;

    result = pthread_create(&thread, NULL, posix_thread, &five);
    pthread_join(thread, &returned);
    said("pthread_create", result ? -1 : *(int *)returned);
    result = thrd_create(&other, c11_thread, &five);
    if (result == thrd_success)
        thrd_join(other, &result);
    said("thrd_create", result);
    process = vfork();
    if (process == 0)
        _exit(7);
    said("vfork", status_of(process));
    result = posix_spawn(&process, "/bin/sh", NULL, NULL, words, environ);
    said("posix_spawn", result ? -1 : status_of(process));
    result = posix_spawnp(&process, "sh", NULL, NULL, words, environ);
    said("posix_spawnp", result ? -1 : status_of(process));
    said("system", WEXITSTATUS(system("exit 7")));
    FILE *pipe = popen("echo 7", "r");
    said("popen", pipe && fgets(line, sizeof line, pipe) && pclose(pipe) == 0 ? atoi(line) : -1);
    process = fork();
    if (process == 0) {
        execve("/bin/sh", words, environ);
        _exit(1);
    }
    said("execve", status_of(process));
    process = fork();
    if (process == 0) {
        execv("/bin/sh", words);
        _exit(1);
    }
    said("execv", status_of(process));
    pthread_condattr_init(&attributes);
    said("pthread_condattr_setclock", pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
    result = sem_init(&sem, 0, 5);
    sem_getvalue(&sem, &five);
    said("sem_init", result ? -1 : five);
    return 0;
}
