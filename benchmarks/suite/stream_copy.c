/* stream_copy.c - a copy whose stores pass by the caches: the floor for sizes above the last cache. Used by suite/references.py */
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { LINE = 64 };

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
