/* What LD_PRELOAD names: a library that needs nothing, looks at its process, and opens the hook,
 * which is in a folder above it, where that fits and may be of use. Decision 35 has the reasons.
 *
 * A library that is opened is searched after libc, and the hook stands in for functions of libc. So
 * this one does, and leads their calls to the hook once that asks for it, else to where they would
 * have gone without either. */

#include "images.h"
#include "stand_ins.h"

/* HOOK_FILE, where the hook is from the folder of this file, and GLIBC_MINOR, the newest glibc 2.x
 * that a symbol of the hook is of, or 0 if it was built for musl, come from the build script of
 * ungil-py. */

#define EXPORTED __attribute__((visibility("default")))

enum { LONGEST_PATH = 4096, AT_SECURE_TAG = 23 };
/* Of <dlfcn.h>, as glibc and musl have it: RTLD_NOW; RTLD_GLOBAL, because Python code asks for the
 * hook's functions as for those of a preloaded library; RTLD_NODELETE. */
enum { HOW_TO_OPEN = 2 | 0x100 | 0x1000 };
/* What glibc's own dlopen adds. */
#define BY_DLOPEN 0x80000000u

typedef void (*function)(void);

/* Where the calls go, and where they go before anybody has said where. Defined by trampolines.S. */
extern function stand_ins[STAND_IN_COUNT] __attribute__((visibility("hidden")));
extern const function first_calls[STAND_IN_COUNT] __attribute__((visibility("hidden")));

/* Functions of libc that are called here. */
enum {
    LIBC_VERSION = STAND_IN_COUNT,
    AUXILIARY, GETPID, WRITE, DLOPEN, DLOPEN_IN_LIBC, DLERROR, NEXT_COUNT
};
/* What is looked for behind this library: what it stands in for, and the above. The program itself
 * may mean something else by such a name. */
#define WANTED(index, name, none) [index] = {#name, 0, NULL},
static struct wanted next[NEXT_COUNT] = {
    STAND_INS(WANTED)
    [LIBC_VERSION] = {"gnu_get_libc_version", 0, NULL},
    [AUXILIARY] = {"getauxval", 0, NULL},
    [GETPID] = {"getpid", 0, NULL},
    [WRITE] = {"write", 0, NULL},
    [DLOPEN] = {"dlopen", 0, NULL},
    /* Before glibc 2.34, where libdl is not loaded. */
    [DLOPEN_IN_LIBC] = {"__libc_dlopen_mode", 0, NULL},
    [DLERROR] = {"dlerror", 0, NULL},
};
/* Calls one of them, which has been found. */
#define CALL(which, type, ...) ((type)next[which].address)(__VA_ARGS__)

/* What may be anywhere, and of `environ` the program has its own copy. */
enum { PYTHON, PYPY, OLD_PYPY, ENVIRONMENT, MUSL, ANYWHERE_COUNT };
static struct wanted anywhere[ANYWHERE_COUNT] = {
    [PYTHON] = {"Py_GetVersion", 0, NULL},
    [PYPY] = {"pypy_main_startup", 0, NULL},
    [OLD_PYPY] = {"pypy_execute_source", 0, NULL},
    [ENVIRONMENT] = {"environ", 0, NULL},
    /* The last step of musl's loader, which finds it by this name itself. */
    [MUSL] = {"__dls3", 0, NULL},
};

/* Whether a thread has been started by a call that came here. */
static int has_started_threads;

#define FAILING(index, name, none)                                                               \
    static long no_##name(void) { return none; }
/* A caller looks at as much of what is returned as the function has. */
STAND_INS(FAILING)
#define FAILING_NAME(index, name, none) (function)no_##name,
static const function failing[STAND_IN_COUNT] = {STAND_INS(FAILING_NAME)};

/* Leads the calls of a function on, unless somebody has said where. Returns where they go now. */
static function lead_on(size_t index) {
    function now = first_calls[index], found = (function)next[index].address;
    return __atomic_compare_exchange_n(
               &stand_ins[index], &now, found, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
        ? found
        : now;
}

/* Called by trampolines.S. A library that has the function may come later. */
__attribute__((visibility("hidden"))) function first_called(unsigned index) {
    if (index < THREAD_STARTER_COUNT)
        __atomic_store_n(&has_started_threads, 1, __ATOMIC_RELAXED);
    if (!next[index].address)
        find(NULL, 0, &next[index], 1);
    return next[index].address ? lead_on(index) : failing[index];
}

static int index_of(const char *name) {
    for (int i = 0; i < STAND_IN_COUNT; i++)
        if (is_same(next[i].name, name))
            return i;
    return -1;
}

/* For the hook: the function that the stub's one of this name stands in for, or null. */
EXPORTED void *ungil_next_v1(const char *name) {
    int index = index_of(name);
    if (index < 0)
        return NULL;
    if (!next[index].address)
        find(NULL, 0, &next[index], 1);
    return next[index].address;
}

/* For the hook: from now on calls of the function of this name go to `instead`. Returns -1 if they
 * do not come here, 1 if threads have been started before, else 0. */
EXPORTED int ungil_stand_in_v1(const char *name, void *instead) {
    int index = index_of(name);
    if (index < 0)
        return -1;
    __atomic_store_n(&stand_ins[index], (function)instead, __ATOMIC_RELEASE);
    return __atomic_load_n(&has_started_threads, __ATOMIC_RELAXED);
}

/* Whether it has the privileges of others than who started it. */
static int is_privileged(void) {
    return !next[AUXILIARY].address
        || CALL(AUXILIARY, unsigned long (*)(unsigned long), AT_SECURE_TAG) != 0;
}

/* Whether this libc has every symbol that the hook needs. musl has them also if the hook was built for
 * glibc. What else there is, nobody has tried. */
static int has_fitting_libc(void) {
    if (!next[LIBC_VERSION].address)
        return anywhere[MUSL].address != NULL;
    const char *version = CALL(LIBC_VERSION, const char *(*)(void));
    if (GLIBC_MINOR == 0 || version[0] != '2' || version[1] != '.')
        return 0;
    int minor = 0;
    for (version += 2; *version >= '0' && *version <= '9'; version++)
        minor = minor * 10 + (*version - '0');
    return minor >= GLIBC_MINOR;
}

/* The value of an environment variable, null if it is not there or empty. */
static const char *variable(const char *name) {
    char ***place = (char ***)anywhere[ENVIRONMENT].address;
    char **environment = place ? *place : NULL;
    for (; environment && *environment; environment++) {
        const char *text = *environment, *rest = name;
        while (*rest && *text == *rest) {
            text++;
            rest++;
        }
        if (!*rest && *text == '=')
            return text[1] ? text + 1 : NULL;
    }
    return NULL;
}

/* Whether this is the process that `ungil run` has become: the name of its mark ends so. */
static int is_the_program(void) {
    const char *mark = variable("UNGIL_RUN"), *digits = mark;
    if (!mark || !next[GETPID].address)
        return 0;
    for (; *mark; mark++)
        if (*mark == '-')
            digits = mark + 1;
    long number = 0;
    for (; *digits >= '0' && *digits <= '9' && number < 1l << 40; digits++)
        number = number * 10 + (*digits - '0');
    return !*digits && number == CALL(GETPID, int (*)(void));
}

/* Whether the hook may have something to do: an interpreter is here, or may come while something is
 * asked of it, or the hook is to say in the end that none came. */
static int may_be_of_use(void) {
    if (anywhere[PYTHON].address || anywhere[PYPY].address || anywhere[OLD_PYPY].address)
        return 1;
    int is_asked = variable("UNGIL_SESSION") || variable("UNGIL_POLICY") || variable("UNGIL_STANDBY");
    return is_asked && (is_the_program() || may_open_more());
}

static size_t length_of(const char *text) {
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

/* Writes the path of the hook. The folder of this file may be reached by a link, which the kernel
 * follows before it goes up from there. */
static int find_hook(char path[LONGEST_PATH]) {
    static const char file[] = HOOK_FILE;
    const char *own = own_path();
    size_t length = own ? length_of(own) : 0;
    while (length > 0 && own[length - 1] != '/')
        length--;
    if (length == 0 || length + sizeof file > LONGEST_PATH)
        return 0;
    for (size_t i = 0; i < length; i++)
        path[i] = own[i];
    for (size_t i = 0; i < sizeof file; i++)
        path[length + i] = file[i];
    return 1;
}

static void say(const char *text) {
    long length = (long)length_of(text);
    if (CALL(WRITE, long (*)(int, const void *, size_t), 2, text, (size_t)length) != length)
        return; /* Nothing can be done. */
}

/* The loader refuses the hook, say because somebody has damaged the file. */
static void tell(const char *why) {
    if (!next[WRITE].address || !is_the_program())
        return;
    say("ungil: no GIL is scheduled, because the loader refuses the hook: ");
    say(why ? why : "it gives no reason");
    say("\n");
}

static void open_hook(void) {
    char path[LONGEST_PATH];
    if (!find_hook(path))
        return;
    if (next[DLOPEN].address) {
        if (!CALL(DLOPEN, void *(*)(const char *, int), path, HOW_TO_OPEN)) {
            /* What it says now, it does not say to the program later. */
            const char *why =
                next[DLERROR].address ? CALL(DLERROR, const char *(*)(void)) : NULL;
            tell(why);
        }
    } else if (next[DLOPEN_IN_LIBC].address) {
        unsigned mode = BY_DLOPEN | HOW_TO_OPEN;
        if (!CALL(DLOPEN_IN_LIBC, void *(*)(const char *, int), path, (int)mode))
            tell(NULL);
    }
}

__attribute__((constructor)) static void on_load(void) {
    /* Those that begin threads stay to be found, so that the first call of one is noticed. The
     * others may be called where nothing may be looked for: in a signal handler, after a fork. */
    find(anywhere, ANYWHERE_COUNT, next, NEXT_COUNT);
    for (size_t i = THREAD_STARTER_COUNT; i < STAND_IN_COUNT; i++)
        if (next[i].address)
            lead_on(i);
    if (!is_privileged() && has_fitting_libc() && may_be_of_use())
        open_hook();
}
