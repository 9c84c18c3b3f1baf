/* vector_avx512vbmi.h - the words of shuffle_template.h, with 64-byte vectors that are shuffled as a whole */
#include <immintrin.h>

#define DMS_NAME(name) name##_avx512vbmi
#define DMS_TARGET DMS_TARGET_AVX512VBMI
#define VECTOR 64
#define LEAVE(streamed) DMS_LEAVE_AVX(streamed)
#define LANES 1

typedef __m512i vector;

static inline DMS_TARGET vector load(const char *from)
{
    return _mm512_loadu_si512((const void *)from);
}

static inline DMS_TARGET void stream(char *to, vector v)    /* aligned */
{
    _mm512_stream_si512((void *)to, v);
}

static inline DMS_TARGET vector load_lanes(const char *from, size_t step)
{
    (void)step;
    return load(from);
}

static inline DMS_TARGET void store_lanes(char *to, size_t step, vector v)
{
    (void)step;
    _mm512_storeu_si512((void *)to, v);
}

static inline DMS_TARGET vector load_table(const uint8_t *table)
{
    return _mm512_loadu_si512((const void *)table);
}

static inline DMS_TARGET vector shuffle_bytes(vector v, vector table, uint64_t mask)
{
    return _mm512_maskz_permutexvar_epi8(mask, table, v);
}

static inline DMS_TARGET vector shuffle_into(vector woven, vector v, vector table, uint64_t mask)
{
    return _mm512_mask_permutexvar_epi8(woven, mask, table, v);
}
