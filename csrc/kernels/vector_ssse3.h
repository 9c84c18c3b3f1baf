/* vector_ssse3.h - the words of the templates, with 16-byte vectors */
#include <tmmintrin.h>

#define DMS_NAME(name) name##_ssse3
#define DMS_TARGET DMS_TARGET_SSSE3
#define VECTOR 16
#define LEAVE(streamed) DMS_LEAVE_SSE(streamed)
#define LANES 1

typedef __m128i vector;

static inline DMS_TARGET vector load(const char *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

static inline DMS_TARGET void store(char *to, vector v)
{
    _mm_storeu_si128((__m128i *)(void *)to, v);
}

static inline DMS_TARGET void stream(char *to, vector v)    /* aligned */
{
    _mm_stream_si128((__m128i *)(void *)to, v);
}

/* Sixteen bytes for each lane of the vector, step apart. */
static inline DMS_TARGET vector load_lanes(const char *from, size_t step)
{
    (void)step;
    return load(from);
}

#define UNPACK(half, bits, a, b) _mm_unpack##half##_epi##bits(a, b)

static inline DMS_TARGET void store_lanes(char *to, size_t step, vector v)
{
    (void)step;
    store(to, v);
}

static inline DMS_TARGET vector load_table(const uint8_t *table)    /* into every lane */
{
    return load((const char *)table);
}

/* Bytes of the table with the high bit set give 0, so no mask is needed. */
static inline DMS_TARGET vector shuffle_bytes(vector v, vector table, uint64_t mask)
{
    (void)mask;
    return _mm_shuffle_epi8(v, table);
}

static inline DMS_TARGET vector shuffle_into(vector woven, vector v, vector table, uint64_t mask)
{
    (void)mask;
    return _mm_or_si128(woven, _mm_shuffle_epi8(v, table));
}

/* b where the mask's bytes are 0xff, a where they are 0. */
static inline DMS_TARGET vector choose(vector a, vector b, vector mask)
{
    return _mm_or_si128(_mm_andnot_si128(mask, a), _mm_and_si128(mask, b));
}
