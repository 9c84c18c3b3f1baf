/* turn_lanes_template.h - squares of elements turned within the lanes of vectors
 *
 * Included after vector_<isa>.h. Sixteen bytes of a row are n elements; n vectors hold n rows. Interleaving the first half of the vectors with
 * the second half moves the last bit of each element's row number to the front of its column number; as many rounds as n has bits turn
 * the square. Here n = 4, two rounds; wider vectors do this in each of their lanes of 16 bytes:
 *
 *     a0 a1 a2 a3        a0 c0 a1 c1        a0 b0 c0 d0
 *     b0 b1 b2 b3   ->   a2 c2 a3 c3   ->   a1 b1 c1 d1
 *     c0 c1 c2 c3        b0 d0 b1 d1        a2 b2 c2 d2
 *     d0 d1 d2 d3        b2 d2 b3 d3        a3 b3 c3 d3
 */
#include "../dms_transpose.h"

static DMS_TARGET DMS_ALWAYS_INLINE vector DMS_NAME(interleave)(vector a, vector b, size_t size, bool high)
{
    switch (size) {
    case 1: return high ? UNPACK(hi, 8, a, b) : UNPACK(lo, 8, a, b);
    case 2: return high ? UNPACK(hi, 16, a, b) : UNPACK(lo, 16, a, b);
    case 4: return high ? UNPACK(hi, 32, a, b) : UNPACK(lo, 32, a, b);
    default: return high ? UNPACK(hi, 64, a, b) : UNPACK(lo, 64, a, b);
    }
}

/* One round: from and to are arrays of n vectors. */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(interleave_all)(vector *to, const vector *from, size_t size)
{
    const size_t n = 16 / size;
    for (size_t k = 0; k < n / 2; k++) {
        to[2 * k] = DMS_NAME(interleave)(from[k], from[k + n / 2], size, false);
        to[2 * k + 1] = DMS_NAME(interleave)(from[k], from[k + n / 2], size, true);
    }
}

/* Turns 16 / size vectors in place. size is a constant, and the arrays are registers. */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(turn_lanes)(vector *v, size_t size)
{
    const size_t n = 16 / size;
    vector t[16];
    if (n == 16 || n == 4) {            /* 4 or 2 rounds */
        DMS_NAME(interleave_all)(t, v, size);
        DMS_NAME(interleave_all)(v, t, size);
    }
    if (n == 16) {
        DMS_NAME(interleave_all)(t, v, size);
        DMS_NAME(interleave_all)(v, t, size);
    }
    if (n == 8) {                       /* 3 rounds */
        DMS_NAME(interleave_all)(t, v, size);
        DMS_NAME(interleave_all)(v, t, size);
        DMS_NAME(interleave_all)(t, v, size);
    }
    if (n == 2)                         /* 1 round */
        DMS_NAME(interleave_all)(t, v, size);
    for (size_t k = 0; k < n && (n == 8 || n == 2); k++)
        v[k] = t[k];
}
