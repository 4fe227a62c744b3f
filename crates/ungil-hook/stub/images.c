/* The dynamic linker has mapped and relocated every image before any code of it runs, so its
 * headers in memory are all that is needed. `dlsym` would do, but before glibc 2.34 it is in a
 * library that programs need not have loaded, and a reference to it would have a version. */

#include "images.h"

/* In every libc, and in glibc of one version since 2.2.4. Weak: its absence is no error. */
extern int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *)
    __attribute__((weak));

/* The beginning of this library, as the linker defines it. */
extern const char __ehdr_start __attribute__((visibility("hidden")));

/* More references than this are not looked through for one that opens images. */
enum { MOST_REFERENCES = 6000 };

struct image {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Half) * versions;
    const uint32_t *gnu;
    const uint32_t *sysv;
    const ElfW(Rela) * references[2];
    size_t reference_counts[2];
};

int is_same(const char *one, const char *other) {
    while (*one && *one == *other) {
        one++;
        other++;
    }
    return *one == *other;
}

static int is_own(const struct dl_phdr_info *info) {
    return info->dlpi_addr == (uintptr_t)&__ehdr_start;
}

/* glibc relocates the pointers of the dynamic section in place, other linkers leave offsets. */
static uintptr_t absolute(uintptr_t base, uintptr_t value) {
    return value < base ? base + value : value;
}

/* Returns whether the image has dynamic symbols. */
static int read_image(struct image *image, const struct dl_phdr_info *info) {
    const ElfW(Dyn) *entry = NULL;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (!entry)
        return 0;
    uintptr_t base = info->dlpi_addr;
    size_t relative = 0;
    *image = (struct image){.base = base};
    for (; entry->d_tag != DT_NULL; entry++) {
        uintptr_t value = entry->d_un.d_val;
        switch (entry->d_tag) {
        case DT_SYMTAB: image->symbols = (const void *)absolute(base, value); break;
        case DT_STRTAB: image->names = (const void *)absolute(base, value); break;
        case DT_VERSYM: image->versions = (const void *)absolute(base, value); break;
        case DT_GNU_HASH: image->gnu = (const void *)absolute(base, value); break;
        case DT_HASH: image->sysv = (const void *)absolute(base, value); break;
        case DT_JMPREL: image->references[0] = (const void *)absolute(base, value); break;
        case DT_PLTRELSZ: image->reference_counts[0] = value / sizeof(ElfW(Rela)); break;
        case DT_RELA: image->references[1] = (const void *)absolute(base, value); break;
        case DT_RELASZ: image->reference_counts[1] = value / sizeof(ElfW(Rela)); break;
        case DT_RELACOUNT: relative = value; break;
        default: break;
        }
    }
    /* Those come first and refer to no symbol. */
    if (image->references[1] && relative <= image->reference_counts[1]) {
        image->references[1] += relative;
        image->reference_counts[1] -= relative;
    }
    return image->symbols && image->names;
}

static uint32_t gnu_hash(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static uint32_t sysv_hash(const char *name) {
    uint32_t hash = 0;
    for (; *name; name++) {
        hash = (hash << 4) + (unsigned char)*name;
        uint32_t top = hash & 0xf0000000;
        hash = (hash ^ (top >> 24)) & ~top;
    }
    return hash;
}

/* Whether the image defines the symbol, in the version that a new program would get. Some libpthreads
 * have functions of libc again, which are known only to a call (IFUNC); libc's own will do. */
static int is_defined(const struct image *image, size_t index, const char *name) {
    const ElfW(Sym) *symbol = &image->symbols[index];
    int is_hidden = image->versions && (image->versions[index] & 0x8000);
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 && !is_hidden
        && ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC
        && is_same(image->names + symbol->st_name, name);
}

/* DT_GNU_HASH: number of buckets, index of the first hashed symbol, words and shift of a Bloom
 * filter, the filter, the buckets, and a hash for each symbol whose lowest bit ends a chain. */
static size_t by_gnu_hash(const struct image *image, const struct wanted *wanted) {
    uint32_t buckets = image->gnu[0], first = image->gnu[1], words = image->gnu[2];
    const ElfW(Addr) *filter = (const ElfW(Addr) *)&image->gnu[4];
    const uint32_t *bucket = (const uint32_t *)&filter[words];
    const uint32_t *chain = &bucket[buckets];
    uint32_t hash = wanted->hash;
    if (buckets == 0 || words == 0)
        return 0;
    ElfW(Addr) word = filter[hash / 64 % words];
    if (!(word >> hash % 64 & word >> (hash >> image->gnu[3]) % 64 & 1))
        return 0;
    for (size_t i = bucket[hash % buckets]; i >= first; i++) {
        if ((chain[i - first] | 1) == (hash | 1) && is_defined(image, i, wanted->name))
            return i;
        if (chain[i - first] & 1)
            break;
    }
    return 0;
}

/* DT_HASH: number of buckets, number of symbols, the buckets, and for each symbol the next one of
 * its bucket. */
static size_t by_sysv_hash(const struct image *image, const char *name) {
    uint32_t buckets = image->sysv[0], symbols = image->sysv[1];
    const uint32_t *bucket = &image->sysv[2];
    if (buckets == 0)
        return 0;
    for (size_t i = bucket[sysv_hash(name) % buckets]; i != 0 && i < symbols;
         i = bucket[buckets + i])
        if (is_defined(image, i, name))
            return i;
    return 0;
}

static void find_in(const struct image *image, struct wanted *wanted, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct wanted *it = &wanted[i];
        if (it->address)
            continue;
        if (!it->hash)
            it->hash = gnu_hash(it->name);
        size_t index = image->gnu    ? by_gnu_hash(image, it)
                       : image->sysv ? by_sysv_hash(image, it->name)
                                     : 0;
        if (index)
            it->address = (void *)(image->base + image->symbols[index].st_value);
    }
}

struct search {
    struct wanted *everywhere, *behind;
    size_t count, behind_count;
    /* Whether this library has been passed. */
    int is_behind;
};

static int search_image(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    struct search *search = argument;
    struct image image;
    if (is_own(info)) {
        search->is_behind = 1;
    } else if (read_image(&image, info)) {
        find_in(&image, search->everywhere, search->count);
        if (search->is_behind)
            find_in(&image, search->behind, search->behind_count);
    }
    return 0;
}

void find(struct wanted *everywhere, size_t count, struct wanted *behind, size_t behind_count) {
    struct search search = {everywhere, behind, count, behind_count, 0};
    if (dl_iterate_phdr)
        dl_iterate_phdr(search_image, &search);
}

/* dlopen, dlmopen, and the dlsym and dlvsym by which they could be found. */
static int opens(const char *name) {
    return name[0] == 'd' && name[1] == 'l'
        && (is_same(name, "dlopen") || is_same(name, "dlmopen") || is_same(name, "dlsym")
            || is_same(name, "dlvsym"));
}

static int calls_what_opens(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    size_t *looked_at = argument;
    struct image image;
    if (is_own(info) || !read_image(&image, info))
        return 0;
    for (size_t table = 0; table < 2; table++) {
        const ElfW(Rela) *reference = image.references[table];
        size_t count = reference ? image.reference_counts[table] : 0;
        *looked_at += count;
        if (*looked_at > MOST_REFERENCES)
            return 1;
        for (; count > 0; count--, reference++) {
            size_t index = ELF64_R_SYM(reference->r_info);
            if (index && opens(image.names + image.symbols[index].st_name))
                return 1;
        }
    }
    return 0;
}

int may_open_more(void) {
    size_t looked_at = 0;
    return !dl_iterate_phdr || dl_iterate_phdr(calls_what_opens, &looked_at);
}

static int keep_own_path(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    if (is_own(info))
        *(const char **)argument = info->dlpi_name;
    return is_own(info);
}

const char *own_path(void) {
    const char *path = NULL;
    if (dl_iterate_phdr)
        dl_iterate_phdr(keep_own_path, &path);
    return path;
}
