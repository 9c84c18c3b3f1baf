/* channels_neon.h - 2, 3 or 4 parts of equal width by the instructions that load and store interleaved vectors
 *
 *     whole    abcabcabcabcabcabcabcabc   -- ld3 -->   aaaaaaaa bbbbbbbb cccccccc   three registers, one for each part
 *                                         <-- st3 --
 *
 * Lanes are as wide as a piece: 1, 2, 4 or 8 bytes. Nothing has to be aligned.
 */
#include "../dms_channels.h"

/* COPY(count, bits, lanes): all whole vectors of a stretch, and then the rows that are left. */
#define COPY(count, bits, lanes)                                                                                                    \
    static void split_##count##_##bits(const dms_channels *c)                                                                        \
    {                                                                                                                               \
        uint64_t row = 0;                                                                                                           \
        for (; c->rows - row >= lanes; row += lanes) {                                                                              \
            const size_t at = (size_t)row * (bits / 8);                                                                             \
            const uint##bits##x##lanes##x##count##_t v = vld##count##q_u##bits((const void *)(c->whole + at * count));              \
            for (int i = 0; i < count; i++)                                                                                         \
                store(c->parts[i] + at, vreinterpretq_s8_u##bits(v.val[i]));                                                        \
        }                                                                                                                           \
        dms_copy_channels(c, true, row);                                                                                            \
    }                                                                                                                               \
                                                                                                                                    \
    static void join_##count##_##bits(const dms_channels *c)                                                                         \
    {                                                                                                                               \
        uint64_t row = 0;                                                                                                           \
        for (; c->rows - row >= lanes; row += lanes) {                                                                              \
            const size_t at = (size_t)row * (bits / 8);                                                                             \
            uint##bits##x##lanes##x##count##_t v;                                                                                   \
            for (int i = 0; i < count; i++)                                                                                         \
                v.val[i] = vreinterpretq_u##bits##_s8(load(c->parts[i] + at));                                                      \
            vst##count##q_u##bits((void *)(c->whole + at * count), v);                                                              \
        }                                                                                                                           \
        dms_copy_channels(c, false, row);                                                                                           \
    }

#define COPY_WIDTHS(count) COPY(count, 8, 16) COPY(count, 16, 8) COPY(count, 32, 4) COPY(count, 64, 2)

COPY_WIDTHS(2)
COPY_WIDTHS(3)
COPY_WIDTHS(4)

typedef void copy_stretch(const dms_channels *channels);

#define WIDTHS_OF(name) {name##_8, name##_16, name##_32, name##_64}

/* By direction, number of parts from 2 on and the width's power of two. */
static copy_stretch *const stretches[2][3][4] = {
    {WIDTHS_OF(split_2), WIDTHS_OF(split_3), WIDTHS_OF(split_4)},
    {WIDTHS_OF(join_2), WIDTHS_OF(join_3), WIDTHS_OF(join_4)},
};

const char *dms_accept_channels_neon(const dmlsplit_plan *plan)
{
    return dms_refuse_equal(plan);
}

void dms_run_channels_neon(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    const uint64_t count = plan->space.operands[0].length / plan->space.operands[1].length;
    const size_t width = dms_equal_width(plan);
    const int power = width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : 3;
    copy_stretch *const copy = stretches[plan->direction][count - 2][power];
    dms_channels channels;
    while (first < last) {
        dms_next_channels(plan, buffers, &first, last, &channels);
        copy(&channels);
    }
}
