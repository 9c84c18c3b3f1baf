/* vector_x86.h - the operations that templates use, for vectors of VECTOR bytes: 16 (SSSE3) or 32 (AVX2) */
#if VECTOR == 16
#include <tmmintrin.h>
#define DMS_NAME(name) name##_ssse3
#define DMS_TARGET DMS_TARGET_SSSE3
#define LANES 1
#define OPERATION(name) _mm_##name
#define ON_BITS(name) _mm_##name##_si128
typedef __m128i vector;
#else
#include <immintrin.h>
#define DMS_NAME(name) name##_avx2
#define DMS_TARGET DMS_TARGET_AVX2
#define LANES 2
#define OPERATION(name) _mm256_##name
#define ON_BITS(name) _mm256_##name##_si256
typedef __m256i vector;
#endif

static inline DMS_TARGET vector load(const char *from)
{
    return ON_BITS(loadu)((const vector *)(const void *)from);
}

static inline DMS_TARGET void store(char *to, vector v)
{
    ON_BITS(storeu)((vector *)(void *)to, v);
}

static inline DMS_TARGET void stream(char *to, vector v)    /* aligned */
{
    ON_BITS(stream)((vector *)(void *)to, v);
}

#define UNPACK(half, bits, a, b) OPERATION(unpack##half##_epi##bits)(a, b)

#if LANES == 1

#include "vector_one_lane.h"

#else

static inline DMS_TARGET __m128i load_lane(const char *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

/* Loads sixteen bytes into each lane, `stride` apart. */
static inline DMS_TARGET vector load_lanes(const char *from, ptrdiff_t stride)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_lane(from)), load_lane(from + stride), 1);
}

static inline DMS_TARGET void store_lanes(char *to, size_t stride, vector v)
{
    if (stride == 16) {
        store(to, v);
        return;
    }
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(v));
    _mm_storeu_si128((__m128i *)(void *)(to + stride), _mm256_extracti128_si256(v, 1));
}

static inline DMS_TARGET vector load_each(const char *const *from)     /* lane i from from[i] */
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_lane(from[0])), load_lane(from[1]), 1);
}

static inline DMS_TARGET void store_each(char *const *to, vector v)     /* lane i at to[i] */
{
    _mm_storeu_si128((__m128i *)(void *)to[0], _mm256_castsi256_si128(v));
    _mm_storeu_si128((__m128i *)(void *)to[1], _mm256_extracti128_si256(v, 1));
}

/* Returns lane i of a and lane j of b, 0 or 1 each. */
static inline DMS_TARGET vector join_lanes(vector a, unsigned i, vector b, unsigned j)
{
    switch (2 * j + i) {
    case 0: return _mm256_permute2x128_si256(a, b, 0x20);
    case 1: return _mm256_permute2x128_si256(a, b, 0x21);
    case 2: return _mm256_permute2x128_si256(a, b, 0x30);
    default: return _mm256_permute2x128_si256(a, b, 0x31);
    }
}

static inline DMS_TARGET vector load_table(const uint8_t *table)    /* into every lane */
{
    return _mm256_broadcastsi128_si256(load_lane((const char *)table));
}

/* Transposes a square matrix of lanes: lane j of vector i becomes lane i of vector j. */
static inline DMS_TARGET void transpose_lanes(vector *v)
{
    const vector first = _mm256_permute2x128_si256(v[0], v[1], 0x20);
    v[1] = _mm256_permute2x128_si256(v[0], v[1], 0x31);
    v[0] = first;
}

#endif

/* Bytes of the table with the high bit set give 0, so no mask is needed. */
static inline DMS_TARGET vector shuffle_bytes(vector v, vector table, uint64_t mask)
{
    (void)mask;
    return OPERATION(shuffle_epi8)(v, table);
}

static inline DMS_TARGET vector shuffle_into(vector woven, vector v, vector table, uint64_t mask)
{
    return ON_BITS(or)(woven, shuffle_bytes(v, table, mask));
}
