/* A program that is no Python and loads one after its start, as plugins and frozen programs do.
 *
 * Usage: embedding LIBRARY HOME HOW CODE [TIMES]
 *
 * Opens LIBRARY, a libpython whose standard library is in HOME, as HOW says (words: global, lazy,
 * deep), initialises it, runs CODE, and finalises it, so many TIMES. Further words: "threads"
 * creates a thread before that, "fork" does it all in a child, "close" closes the library each
 * time and prints whether it is gone, "unused" only opens it, "stop" stops the process before it
 * opens the library and before it initialises it.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *nothing(void *argument) { return argument; }

static void *function(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    return found;
}

/* A thread that Python has joined may still be on its way out of the library. */
static void wait_for_threads(void) {
    for (int threads = 2; threads > 1; sched_yield()) {
        DIR *folder = opendir("/proc/self/task");
        for (threads = -2; readdir(folder); threads++) {}
        closedir(folder);
    }
}

static int run(const char *path, int flags, const char *how, const char *code) {
    if (strstr(how, "stop")) raise(SIGSTOP);
    void *library = dlopen(path, flags);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    if (strstr(how, "unused")) return 0;
    void (*initialize)(void) = function(library, "Py_Initialize");
    int (*run_string)(const char *) = function(library, "PyRun_SimpleString");
    void (*finalize)(void) = function(library, "Py_Finalize");
    if (strstr(how, "stop")) raise(SIGSTOP);
    initialize();
    int status = run_string(code);
    finalize();
    if (strstr(how, "close")) {
        wait_for_threads();
        dlclose(library);
        puts(dlopen(path, RTLD_LAZY | RTLD_NOLOAD) ? "still there" : "gone");
        fflush(stdout);
    }
    return status ? 4 : 0;
}

int main(int count, char **words) {
    if (count < 5) return 2;
    const char *how = words[3];
    int flags = strstr(how, "lazy") ? RTLD_LAZY : RTLD_NOW;
    flags |= strstr(how, "global") ? RTLD_GLOBAL : RTLD_LOCAL;
    if (strstr(how, "deep")) flags |= RTLD_DEEPBIND;
    /* Not for ungil, which is a Python, too. */
    setenv("PYTHONHOME", words[2], 1);
    if (strstr(how, "threads")) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL)) return 5;
        pthread_join(thread, NULL);
    }
    if (strstr(how, "fork")) {
        int status;
        pid_t child = fork();
        if (child) return waitpid(child, &status, 0) == child && WIFEXITED(status)
            ? WEXITSTATUS(status) : 6;
    }
    int status = 0;
    for (int times = count > 5 ? atoi(words[5]) : 1; times > 0 && !status; times--)
        status = run(words[1], flags, how, words[4]);
    return status;
}
