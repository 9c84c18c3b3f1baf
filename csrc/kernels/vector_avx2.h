/* vector_avx2.h - the words of the templates, with 32-byte vectors */
#include <immintrin.h>

#define DMS_NAME(name) name##_avx2
#define DMS_TARGET DMS_TARGET_AVX2
#define VECTOR 32

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
