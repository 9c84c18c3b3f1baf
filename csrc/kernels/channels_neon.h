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
    static void copy_##count##_##bits(const dms_channels *c, bool split)                                                            \
    {                                                                                                                               \
        uint64_t row = 0;                                                                                                           \
        for (; c->rows - row >= lanes; row += lanes) {                                                                              \
            const size_t at = (size_t)row * (bits / 8);                                                                             \
            char *const whole = c->whole + at * count;                                                                              \
            uint##bits##x##lanes##x##count##_t v;                                                                                   \
            if (split)                                                                                                              \
                v = vld##count##q_u##bits((const void *)whole);                                                                     \
            for (int i = 0; i < count; i++)                                                                                         \
                if (split)                                                                                                          \
                    store(c->parts[i] + at, vreinterpretq_s8_u##bits(v.val[i]));                                                    \
                else                                                                                                                \
                    v.val[i] = vreinterpretq_u##bits##_s8(load(c->parts[i] + at));                                                  \
            if (!split)                                                                                                             \
                vst##count##q_u##bits((void *)whole, v);                                                                            \
        }                                                                                                                           \
        dms_copy_channels(c, split, row);                                                                                           \
    }
#define COPY_WIDTHS(count) COPY(count, 8, 16) COPY(count, 16, 8) COPY(count, 32, 4) COPY(count, 64, 2)

COPY_WIDTHS(2)
COPY_WIDTHS(3)
COPY_WIDTHS(4)

/* By number of parts from 2 on and the width's power of two. */
static void (*const stretches[3][4])(const dms_channels *c, bool split) = {
    {copy_2_8, copy_2_16, copy_2_32, copy_2_64}, {copy_3_8, copy_3_16, copy_3_32, copy_3_64}, {copy_4_8, copy_4_16, copy_4_32, copy_4_64},
};

void dms_run_channels_neon(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    const uint64_t count = plan->space.operands[0].length / plan->space.operands[1].length;
    const size_t width = dms_equal_width(plan);
    const int power = width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : 3;
    dms_channels channels;
    while (first < last) {
        dms_next_channels(plan, buffers, &first, last, &channels);
        stretches[count - 2][power](&channels, plan->direction == DMLSPLIT_SPLIT);
    }
}
