/* paint.h - bytes that name their place
 *
 * A kernel permutes bytes: where no branch and no address depends on them, a run over bytes that all differ shows what it does to any others. A byte has 251
 * values and more places, so a run is repeated for each digit of the places, in base 251. The other five values are those of bytes that are not written.
 */
#ifndef PAINT_H
#define PAINT_H

#include "dms_internal.h"

#ifdef WITH_MEMCHECK
#include <valgrind/memcheck.h>
/* A branch or an address that depends on such bytes is an error, until they are shown. */
#define PAINT_HIDE(bytes, size) ((void)VALGRIND_MAKE_MEM_UNDEFINED(bytes, size))
#define PAINT_SHOW(bytes, size) ((void)VALGRIND_MAKE_MEM_DEFINED(bytes, size))
#elif defined(WITH_MSAN)
#include <sanitizer/msan_interface.h>
#define PAINT_HIDE(bytes, size) __msan_poison(bytes, size)
#define PAINT_SHOW(bytes, size) __msan_unpoison(bytes, size)
/* Whether a byte that was copied is still as undefined as its source: if not, the sanitizer has lost sight of it. */
#define PAINT_FOLLOWED(byte) (__msan_test_shadow(byte, 1) == 0)
#else
#define PAINT_HIDE(bytes, size) ((void)(bytes), (void)(size))
#define PAINT_SHOW(bytes, size) ((void)(bytes), (void)(size))
#endif
#ifndef PAINT_FOLLOWED
#define PAINT_FOLLOWED(byte) ((void)(byte), true)
#endif

enum { PAINT_BASE = 251 };

/* How many digits tell so many places from each other. Sanitizers and memcheck look at addresses, and are slow: there one is enough. */
static inline int paint_digits(uint64_t places)
{
    int digits = 1;
#if !DMS_SANITIZED && !defined(WITH_MEMCHECK) && !defined(WITH_MSAN)
    for (uint64_t told = PAINT_BASE; told < places; told *= PAINT_BASE)
        digits++;
#endif
    return (void)places, digits;
}

/* The digit (0: the last) of places from `first` on. */
static inline void paint_places(char *bytes, size_t size, uint64_t first, int digit)
{
    uint64_t each = 1;                  /* places that share a digit */
    for (int i = 0; i < digit; i++)
        each *= PAINT_BASE;
    uint64_t value = first / each % PAINT_BASE, left = each - first % each;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (char)value;
        if (--left == 0) {
            left = each;
            value = value + 1 < PAINT_BASE ? value + 1 : 0;
        }
    }
}

/* What no painted byte is. */
static inline void paint_unwritten(char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(PAINT_BASE + i % (256 - PAINT_BASE));
}

#endif
