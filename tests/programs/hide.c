/* Folders are missing: what the C library is asked for below one of $HIDE, a list with colons, is
 * not there, but what is below $KEEP. For machines on which a test may not mount anything. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int hidden(const char *path) {
    const char *list = getenv("HIDE"), *kept = getenv("KEEP");
    if (path && kept && strncmp(path, kept, strlen(kept)) == 0)
        return 0;
    while (path && list && *list) {
        size_t length = strcspn(list, ":");
        if (strncmp(path, list, length) == 0 && (path[length] == '/' || path[length] == 0)) {
            errno = ENOENT;
            return 1;
        }
        list += length + (list[length] == ':');
    }
    return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name)                                            \
    int name(const char *path, int flags, ...) {              \
        va_list rest;                                         \
        va_start(rest, flags);                                \
        int mode = va_arg(rest, int);                         \
        va_end(rest);                                         \
        return hidden(path) ? -1 : REAL(name)(path, flags, mode); \
    }
#define OPENAT(name)                                          \
    int name(int folder, const char *path, int flags, ...) {  \
        va_list rest;                                         \
        va_start(rest, flags);                                \
        int mode = va_arg(rest, int);                         \
        va_end(rest);                                         \
        return hidden(path) ? -1 : REAL(name)(folder, path, flags, mode); \
    }
#define FUNCTION(type, failed, name, parameters, arguments)   \
    type name parameters { return hidden(path) ? failed : REAL(name) arguments; }

int open(const char *, int, ...);
int open64(const char *, int, ...);
int openat(int, const char *, int, ...);
int openat64(int, const char *, int, ...);
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
FUNCTION(FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
FUNCTION(FILE *, NULL, fopen64, (const char *path, const char *mode), (path, mode))
FUNCTION(DIR *, NULL, opendir, (const char *path), (path))
FUNCTION(int, -1, access, (const char *path, int mode), (path, mode))
FUNCTION(int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
FUNCTION(int, -1, stat, (const char *path, struct stat *to), (path, to))
FUNCTION(int, -1, lstat, (const char *path, struct stat *to), (path, to))
FUNCTION(int, -1, stat64, (const char *path, struct stat64 *to), (path, to))
FUNCTION(int, -1, lstat64, (const char *path, struct stat64 *to), (path, to))
FUNCTION(int, -1, fstatat, (int folder, const char *path, struct stat *to, int flags),
         (folder, path, to, flags))
FUNCTION(int, -1, fstatat64, (int folder, const char *path, struct stat64 *to, int flags),
         (folder, path, to, flags))
FUNCTION(int, -1, statx,
         (int folder, const char *path, int flags, unsigned mask, struct statx *to),
         (folder, path, flags, mask, to))
FUNCTION(int, -1, statvfs, (const char *path, struct statvfs *to), (path, to))
FUNCTION(int, -1, statvfs64, (const char *path, struct statvfs64 *to), (path, to))
FUNCTION(ssize_t, -1, readlink, (const char *path, char *to, size_t size), (path, to, size))
FUNCTION(int, -1, linkat, (int from, const char *path, int folder, const char *to, int flags),
         (from, path, folder, to, flags))
