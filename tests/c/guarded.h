/* guarded.h - memory with unmapped pages before and after it */
#ifndef GUARDED_H
#define GUARDED_H

#include <stddef.h>
#include <stdlib.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <sys/mman.h>
#endif

#define GUARDED_PAGE 4096u

/* size bytes that touch the guard page before (at_end 0) or after them (at_end 1). */
typedef struct guarded {
    char *bytes;
    size_t size;
    char *mapping;
    size_t mapped;
} guarded;

static inline guarded guarded_allocate(size_t size, int at_end)
{
    guarded g;
    const size_t inner = (size + GUARDED_PAGE - 1) / GUARDED_PAGE * GUARDED_PAGE;
    g.size = size;
    g.mapped = inner + 2 * GUARDED_PAGE;
#ifdef _WIN32
    g.mapping = VirtualAlloc(NULL, g.mapped, MEM_RESERVE, PAGE_NOACCESS);
    if (g.mapping == NULL || (inner > 0 && VirtualAlloc(g.mapping + GUARDED_PAGE, inner, MEM_COMMIT, PAGE_READWRITE) == NULL))
        abort();
#else
    g.mapping = mmap(NULL, g.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.mapping == MAP_FAILED || (inner > 0 && mprotect(g.mapping + GUARDED_PAGE, inner, PROT_READ | PROT_WRITE) != 0))
        abort();
#endif
    g.bytes = g.mapping + GUARDED_PAGE + (at_end ? inner - size : 0);
    return g;
}

static inline void guarded_free(guarded *g)
{
#ifdef _WIN32
    VirtualFree(g->mapping, 0, MEM_RELEASE);
#else
    munmap(g->mapping, g->mapped);
#endif
    g->mapping = NULL;
}

#endif
