/* vector_avx512.h - the operations that templates use, for 64-byte vectors; with VBMI if PERMUTES_BYTES is defined */
#include <immintrin.h>

#define VECTOR 64
#ifdef PERMUTES_BYTES
#define DMS_NAME(name) name##_avx512vbmi
#define DMS_TARGET DMS_TARGET_AVX512VBMI
#else
#define DMS_NAME(name) name##_avx512
#define DMS_TARGET DMS_TARGET_AVX512
#endif

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

/* Returns a mask of the first size bytes. */
static inline __mmask64 first_bytes(size_t size)
{
    return size >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << size) - 1;
}

static const uint8_t iota[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
                                 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

#ifdef PERMUTES_BYTES

#define LANES 1
#include "vector_one_lane.h"

enum { ROTATED = 1 };                   /* bytes: offsets of rotations are multiples of it */

/* Returns the table that rotates a vector by `fill` bytes: byte 0 becomes byte fill. */
static inline DMS_TARGET vector rotation_by(size_t fill)
{
    return _mm512_sub_epi8(load_table(iota), _mm512_set1_epi8((char)fill));
}

#define ROTATE(v, rotation) _mm512_permutexvar_epi8(rotation, v)

static inline DMS_TARGET vector shuffle_bytes(vector v, vector table, uint64_t mask)
{
    return _mm512_maskz_permutexvar_epi8(mask, table, v);
}

static inline DMS_TARGET vector shuffle_into(vector woven, vector v, vector table, uint64_t mask)
{
    return _mm512_mask_permutexvar_epi8(woven, mask, table, v);
}

#else

enum { ROTATED = 2 };

/* Returns the table that rotates a vector by `fill` bytes, an even number, by words. */
static inline DMS_TARGET vector rotation_by(size_t fill)
{
    const vector words = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)iota));
    return _mm512_sub_epi16(words, _mm512_set1_epi16((short)(fill / 2)));
}

#define ROTATE(v, rotation) _mm512_permutexvar_epi16(rotation, v)

#define UNPACK(half, bits, a, b) _mm512_unpack##half##_epi##bits(a, b)

/* Returns the last `fill` bytes of a vector (an even number), followed by the first ones of the next. */
static inline DMS_TARGET vector follow(vector v, vector next, size_t fill)
{
    const vector words = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)iota));
    return _mm512_permutex2var_epi16(v, _mm512_add_epi16(words, _mm512_set1_epi16((short)(32 - fill / 2))), next);
}

static inline DMS_TARGET __m128i load_lane(const char *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

static inline DMS_TARGET vector load_each(const char *const *from)     /* lane i from from[i] */
{
    const vector first = _mm512_inserti32x4(_mm512_castsi128_si512(load_lane(from[0])), load_lane(from[1]), 1);
    return _mm512_inserti32x4(_mm512_inserti32x4(first, load_lane(from[2]), 2), load_lane(from[3]), 3);
}

static inline DMS_TARGET void store_each(char *const *to, vector v)     /* lane i at to[i] */
{
    _mm_storeu_si128((__m128i *)(void *)to[0], _mm512_castsi512_si128(v));
    _mm_storeu_si128((__m128i *)(void *)to[1], _mm512_extracti32x4_epi32(v, 1));
    _mm_storeu_si128((__m128i *)(void *)to[2], _mm512_extracti32x4_epi32(v, 2));
    _mm_storeu_si128((__m128i *)(void *)to[3], _mm512_extracti32x4_epi32(v, 3));
}

/* Transposes a square matrix of lanes: lane j of vector i becomes lane i of vector j. */
static inline DMS_TARGET void transpose_lanes(vector *v)
{
    const vector even = _mm512_shuffle_i32x4(v[0], v[1], 0x88), odd = _mm512_shuffle_i32x4(v[0], v[1], 0xdd);
    const vector even_after = _mm512_shuffle_i32x4(v[2], v[3], 0x88), odd_after = _mm512_shuffle_i32x4(v[2], v[3], 0xdd);
    v[0] = _mm512_shuffle_i32x4(even, even_after, 0x88);
    v[1] = _mm512_shuffle_i32x4(odd, odd_after, 0x88);
    v[2] = _mm512_shuffle_i32x4(even, even_after, 0xdd);
    v[3] = _mm512_shuffle_i32x4(odd, odd_after, 0xdd);
}

#endif
