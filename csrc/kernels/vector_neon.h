/* vector_neon.h - the operations that templates use, for 16-byte vectors of 64-bit Arm */
#if DMS_MSVC
#include <arm64_neon.h>
#else
#include <arm_neon.h>
#endif

#define DMS_NAME(name) name##_neon
#define DMS_TARGET
#define VECTOR 16
#define LANES 1

typedef int8x16_t vector;               /* signed: intrinsics convert it to all unsigned types */

static inline vector load(const char *from)
{
    return vld1q_s8((const int8_t *)from);
}

static inline void store(char *to, vector v)
{
    vst1q_s8((int8_t *)to, v);
}

/* Stores a pair of registers by stnp, for which there is no intrinsic. */
static inline void stream(char *to, vector v)
{
#if defined(__GNUC__)
    __asm__ volatile("stnp %d0, %d1, [%2]" : : "w"(vget_low_s8(v)), "w"(vget_high_s8(v)), "r"(to) : "memory");
#else
    store(to, v);
#endif
}

#include "vector_one_lane.h"

#define ZIP_lo(bits) vzip1q_u##bits
#define ZIP_hi(bits) vzip2q_u##bits
#define UNPACK(half, bits, a, b) \
    vreinterpretq_s8_u##bits(ZIP_##half(bits)(vreinterpretq_u##bits##_s8(a), vreinterpretq_u##bits##_s8(b)))

/* Bytes of the table from 16 on give 0, so no mask is needed. */
static inline vector shuffle_bytes(vector v, vector table, uint64_t mask)
{
    (void)mask;
    return vqtbl1q_s8(v, vreinterpretq_u8_s8(table));
}

static inline vector shuffle_into(vector woven, vector v, vector table, uint64_t mask)
{
    return vorrq_s8(woven, shuffle_bytes(v, table, mask));
}
