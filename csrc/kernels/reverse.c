/* reverse.c - elements that lie backwards in the source
 *
 *     source   ....hgfedcba            a is read first
 *     target   abcdefgh....
 *
 * Plain loops whose steps are constants: compilers make vectors of them that are reversed in registers.
 */
#include "../dms_kernel.h"

static DMS_ALWAYS_INLINE void reverse_line(char *to, const char *from, uint64_t count, size_t size)
{
    from -= (count - 1) * size;         /* the last element */
    for (uint64_t i = 0; i < count; i++)
        memcpy(to + i * size, from + (count - 1 - i) * size, size);
}

static DMS_ALWAYS_INLINE void reverse(const dms_nest *nest, char *target, const char *source, size_t size)
{
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_first(nest->rank, index);
    do
        reverse_line(target, source, nest->loops[nest->rank - 1].size, size);
    while (dms_next(nest->loops, nest->rank - 1, index, &target, &source));
}

static const char *refuse(const dms_nest *nest)
{
    if (nest->run > 16 || (nest->run & (nest->run - 1)) != 0)
        return "elements are not of 1, 2, 4, 8 or 16 bytes";
    if (nest->rank == 0)
        return "it is one run";
    const dms_loop *last = &nest->loops[nest->rank - 1];
    return last->target_stride == (int64_t)nest->run && last->source_stride == -(int64_t)nest->run ? NULL : "no loop goes backwards";
}

#define REVERSE(name, target_isa)                                                          \
    const char *dms_accept_##name(const dms_nest *nest)                                    \
    {                                                                                      \
        return refuse(nest);                                                               \
    }                                                                                      \
    target_isa void dms_run_##name(const dms_nest *nest, char *target, const char *source) \
    {                                                                                      \
        switch (nest->run) {                                                               \
        case 1: reverse(nest, target, source, 1); break;                                   \
        case 2: reverse(nest, target, source, 2); break;                                   \
        case 4: reverse(nest, target, source, 4); break;                                   \
        case 8: reverse(nest, target, source, 8); break;                                   \
        default: reverse(nest, target, source, 16); break;                                 \
        }                                                                                  \
    }

#if DMS_AVX2
REVERSE(reverse_avx2, DMS_TARGET_AVX2)
#endif
REVERSE(reverse, )
