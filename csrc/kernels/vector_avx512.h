/* vector_avx512.h - the words of the templates, with 64-byte vectors */
#include <immintrin.h>

#define DMS_NAME(name) name##_avx512
#define DMS_TARGET DMS_TARGET_AVX512
#define VECTOR 64
#define LEAVE(streamed) DMS_LEAVE_AVX(streamed)

#include "mask_avx512.h"

typedef __m512i vector;

static inline DMS_TARGET vector load(const char *from)
{
    return _mm512_loadu_si512((const void *)from);
}

static inline DMS_TARGET void store(char *to, vector v)
{
    _mm512_storeu_si512((void *)to, v);
}

static inline DMS_TARGET void stream(char *to, vector v)    /* aligned */
{
    _mm512_stream_si512((void *)to, v);
}

static inline DMS_TARGET __m128i load_lane(const char *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

/* Sixteen bytes for each lane of the vector, step apart. */
static inline DMS_TARGET vector load_lanes(const char *from, size_t step)
{
    const __m512i one = _mm512_castsi128_si512(load_lane(from));
    const __m512i two = _mm512_inserti32x4(one, load_lane(from + step), 1);
    const __m512i three = _mm512_inserti32x4(two, load_lane(from + 2 * step), 2);
    return _mm512_inserti32x4(three, load_lane(from + 3 * step), 3);
}

/* The table that moves byte 0 to byte fill, which is even, and the end of a vector to its begin. */
static inline DMS_TARGET vector rotation_by(size_t fill)
{
    const vector iota = _mm512_set_epi16(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4,
                                         3, 2, 1, 0);
    return _mm512_sub_epi16(iota, _mm512_set1_epi16((short)(fill / 2)));
}

#define ROTATE(v, rotation) _mm512_permutexvar_epi16(rotation, v)

#define UNPACK(half, bits, a, b) _mm512_unpack##half##_epi##bits(a, b)
