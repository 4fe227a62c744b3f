/* The images of this process, and functions in them: found without libc, whichever that is. */

#ifndef IMAGES_H
#define IMAGES_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

struct wanted {
    const char *name;
    uint32_t hash;
    /* Where it is, or null. */
    void *address;
};

/* Finds functions and variables by their names, each in the first image that defines it: those of
 * `everywhere` in any but this library, those of `behind` in the images that the loader searches
 * after this library. What has an address already is left alone. */
void find(struct wanted *everywhere, size_t count, struct wanted *behind, size_t behind_count);

/* Whether an image calls what opens further ones. True also where it would take long to know. */
int may_open_more(void);

/* The path by which the loader knows this library, or null. */
const char *own_path(void);

int is_same(const char *one, const char *other);

#endif
