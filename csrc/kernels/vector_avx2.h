/* vector_avx2.h - the words of the templates, with 32-byte vectors */
#include <immintrin.h>

#define DMS_NAME(name) name##_avx2
#define DMS_TARGET DMS_TARGET_AVX2
#define VECTOR 32
#define LEAVE(streamed) DMS_LEAVE_AVX(streamed)
#define LANES 2

typedef __m256i vector;

static inline DMS_TARGET vector load(const char *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

static inline DMS_TARGET void store(char *to, vector v)
{
    _mm256_storeu_si256((__m256i *)(void *)to, v);
}

static inline DMS_TARGET void stream(char *to, vector v)    /* aligned */
{
    _mm256_stream_si256((__m256i *)(void *)to, v);
}

static inline DMS_TARGET __m128i load_lane(const char *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

/* Sixteen bytes for each lane of the vector, step apart. */
static inline DMS_TARGET vector load_lanes(const char *from, size_t step)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_lane(from)), load_lane(from + step), 1);
}

#define UNPACK(half, bits, a, b) _mm256_unpack##half##_epi##bits(a, b)

static inline DMS_TARGET void store_lanes(char *to, size_t step, vector v)
{
    if (step == 16) {
        store(to, v);
        return;
    }
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(v));
    _mm_storeu_si128((__m128i *)(void *)(to + step), _mm256_extracti128_si256(v, 1));
}

static inline DMS_TARGET vector load_table(const uint8_t *table)    /* into every lane */
{
    return _mm256_broadcastsi128_si256(load_lane((const char *)table));
}

/* Bytes of the table with the high bit set give 0, so no mask is needed. */
static inline DMS_TARGET vector shuffle_bytes(vector v, vector table, uint64_t mask)
{
    (void)mask;
    return _mm256_shuffle_epi8(v, table);
}

static inline DMS_TARGET vector shuffle_into(vector woven, vector v, vector table, uint64_t mask)
{
    (void)mask;
    return _mm256_or_si256(woven, _mm256_shuffle_epi8(v, table));
}

/* b where the mask's bytes are 0xff, a where they are 0. */
static inline DMS_TARGET vector choose(vector a, vector b, vector mask)
{
    return _mm256_blendv_epi8(a, b, mask);
}
