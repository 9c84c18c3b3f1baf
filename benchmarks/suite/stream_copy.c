/* stream_copy.c - copies whose stores pass by the caches, the floor for sizes above the last cache: line by line, and eight pages at once, which keeps
 * more of what a CPU fetches by itself in flight. And a read of all lines, for what comes after a copy. Used by suite/references.py */
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { LINE = 64, PAGE = 4096, PAGES = 8 };

__attribute__((target("avx512f"))) static void lines512(char *to, const char *from, size_t lines)
{
    for (size_t i = 0; i < lines; i++)
        _mm512_stream_si512((void *)(to + i * LINE), _mm512_loadu_si512(from + i * LINE));
}

static void lines128(char *to, const char *from, size_t lines)
{
    for (size_t i = 0; i < lines * LINE; i += LINE)
        for (size_t j = 0; j < LINE; j += 16)
            _mm_stream_si128((__m128i *)(to + i + j), _mm_loadu_si128((const __m128i *)(from + i + j)));
}

__attribute__((target("avx512f"))) static void pages512(char *to, const char *from)
{
    for (size_t i = 0; i < PAGE; i += LINE)
        for (size_t page = 0; page < PAGES; page++)
            _mm512_stream_si512((void *)(to + page * PAGE + i), _mm512_loadu_si512(from + page * PAGE + i));
}

static void pages128(char *to, const char *from)
{
    for (size_t i = 0; i < PAGE; i += LINE)
        for (size_t page = 0; page < PAGES; page++)
            lines128(to + page * PAGE + i, from + page * PAGE + i, 1);
}

void page_copy(char *to, const char *from, size_t size)
{
    const size_t step = PAGES * PAGE, whole = size / step * step;
    for (size_t at = 0; at < whole; at += step)
        if (__builtin_cpu_supports("avx512f"))
            pages512(to + at, from + at);
        else
            pages128(to + at, from + at);
    _mm_sfence();
    memcpy(to + whole, from + whole, size - whole);
}

/* Loads a word of each line; `to` receives what keeps the loads from being left out. */
void read_lines(char *to, const char *from, size_t size)
{
    char seen = 0;
    for (size_t i = 0; i < size; i += LINE)
        seen = (char)(seen ^ from[i]);
    *to = seen;
}

/* `to` is on a cache line. */
void stream_copy(char *to, const char *from, size_t size)
{
    const size_t lines = size / LINE;
    if (__builtin_cpu_supports("avx512f"))
        lines512(to, from, lines);
    else
        lines128(to, from, lines);
    _mm_sfence();
    memcpy(to + lines * LINE, from + lines * LINE, size % LINE);
}
#endif
