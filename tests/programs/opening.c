/* Can open libraries, so a Python may come. Says what the loader has to tell it at its beginning,
 * and which of ungil's libraries it has. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **words) {
    const char *said = dlerror();
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    int has_hook = 0, has_stub = 0;

    puts(said ? said : "nothing");
    while (maps && fgets(line, sizeof line, maps)) {
        has_hook |= strstr(line, "/libungil_hook.so") != NULL;
        has_stub |= strstr(line, "/libungil_preload.so") != NULL;
    }
    printf("%s %s\n", has_stub ? "stub" : "-", has_hook ? "hook" : "-");
    return count > 1 && !dlopen(words[1], RTLD_NOW);
}
