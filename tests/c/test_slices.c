/* test_slices.c - what several threads do: no two slices write one line of memory (128 bytes at most), and together they write everything once */
#include "check.h"
#include "dms_internal.h"

#include <stdlib.h>
#include <string.h>

enum { RANK = 3, PARTS = 40, LINE = 128, MOST_SLICES = 7, SPOILT = 0xFF };

/* Strides in elements, {0}: packed. Parts lie back to back in one block. */
typedef struct shape {
    const char *name;
    uint32_t element_size, axis;
    uint64_t sizes[RANK];
    int64_t whole[RANK], part[RANK];
    uint64_t length;                    /* of each part on the axis */
} shape;

static const shape shapes[] = {
    {"one run", 1, 0, {300001, 1, 1}, {0}, {0}, 300001},
    {"long runs", 4, 0, {80, 701, 1}, {0}, {0}, 20},
    {"short runs", 4, 0, {40, 9, 1}, {0}, {0}, 1},
    {"runs of 3 KB", 1, 0, {40, 3001, 1}, {0}, {0}, 1},
    {"rows", 4, 1, {1500, 90, 1}, {0}, {0}, 30},
    {"bytes", 1, 2, {70, 91, 3}, {0}, {0}, 1},
    {"whole lines", 4, 1, {4096, 32, 1}, {0}, {0}, 16},
    {"8 channels", 2, 1, {5001, 8, 1}, {0}, {0}, 1},
    {"small rows", 8, 1, {9001, 8, 1}, {0}, {0}, 4},
    {"columns", 4, 1, {3001, 40, 1}, {0}, {0}, 1},
    {"transposed", 4, 0, {400, 300, 1}, {1, 400, 1}, {0}, 200},
    {"transposed parts", 4, 1, {300, 200, 1}, {0}, {1, 300, 1}, 100},
    {"short loops", 1, 0, {12, 13, 2001}, {13 * 2003, 2003, 1}, {0}, 6},
    {"padded", 2, 1, {5000, 60, 1}, {117, 1, 1}, {0}, 30},
    {"mirrored", 4, 1, {500, 60, 1}, {60, -1, 1}, {0}, 30},
    {"broadcast", 4, 1, {2000, 60, 1}, {0, 1, 1}, {0}, 30},
    {"a few bytes", 4, 0, {4, 1, 1}, {0}, {0}, 2},
};

typedef struct memory {
    void *allocated;
    unsigned char *bytes, *expected;    /* bytes begins on a line */
    int *owner;                         /* of each line: a slice + 1, or 0 */
    size_t size;
} memory;

static memory allocate(size_t size)
{
    memory m;
    m.size = (size + 3 * LINE) / LINE * LINE;
    m.allocated = malloc(m.size + LINE);
    m.bytes = (unsigned char *)m.allocated + (0 - (uintptr_t)m.allocated) % LINE;
    m.expected = malloc(m.size);
    m.owner = calloc(m.size / LINE, sizeof *m.owner);
    if (m.allocated == NULL || m.expected == NULL || m.owner == NULL)
        abort();
    return m;
}

static void release(memory *m)
{
    free(m->allocated);
    free(m->expected);
    free(m->owner);
}

/* Bytes below SPOILT. */
static void paint(memory *m)
{
    for (size_t i = 0; i < m->size; i++)
        m->bytes[i] = (unsigned char)(i % 251);
}

static dmlsplit_plan *create(const shape *s, bool split)
{
    int64_t whole[RANK], part[PARTS * RANK];
    uint64_t lengths[PARTS];
    dmlsplit_geometry g;
    dmlsplit_plan *plan = NULL;
    memset(&g, 0, sizeof g);
    g.struct_size = sizeof g;
    g.direction = split ? DMLSPLIT_SPLIT : DMLSPLIT_JOIN;
    g.element_size = s->element_size;
    g.rank = RANK;
    g.axis = s->axis;
    g.sizes = s->sizes;
    g.part_count = s->sizes[s->axis] / s->length;
    g.lengths = lengths;
    for (uint64_t i = 0; i < g.part_count; i++) {
        lengths[i] = s->length;
        for (int d = 0; d < RANK; d++)
            part[i * RANK + (uint64_t)d] = s->part[d] * (int64_t)s->element_size;
    }
    for (int d = 0; d < RANK; d++)
        whole[d] = s->whole[d] * (int64_t)s->element_size;
    g.strides = s->whole[2] != 0 ? whole : NULL;
    g.part_strides = s->part[2] != 0 ? part : NULL;
    CHECK_EQUAL(dmlsplit_plan_create(&g, &plan, NULL), DMLSPLIT_OK);
    return plan;
}

static void run_slices(const dmlsplit_plan *plan, const dms_buffers *buffers, memory *written, uint64_t count)
{
    static unsigned char touched[1 << 22];
    memset(written->owner, 0, written->size / LINE * sizeof *written->owner);
    memset(touched, 0, written->size);
    for (uint64_t i = 0; i <= count; i++) {
        int shared = 0, twice = 0;
        memset(written->bytes, SPOILT, written->size);
        dms_run_slice(plan, buffers, i, count);
        for (size_t b = 0; b < written->size; b++) {
            if (written->bytes[b] == SPOILT)
                continue;
            twice += touched[b];
            touched[b] = 1;
            int *owner = &written->owner[b / LINE];
            if (i < count) {
                shared += *owner != 0 && *owner != (int)i + 1;
                *owner = (int)i + 1;
            }
        }
        CHECK_EQUAL(shared, 0);
        CHECK_EQUAL(twice, 0);
        for (size_t b = 0; b < written->size; b++)      /* what was written is right */
            if (written->bytes[b] != SPOILT && written->bytes[b] != written->expected[b]) {
                CHECK(!"a wrong byte");
                break;
            }
    }
    for (size_t b = 0; b < written->size; b++)
        if (touched[b] != (written->expected[b] != SPOILT)) {
            CHECK(!"a byte is missing");
            break;
        }
}

static void run_shape(const shape *s, bool split, uint64_t count, size_t skew, bool streamed)
{
    int64_t begin, end;
    size_t part_size = s->element_size;
    void *parts[PARTS];
    dms_force_stream_threshold(streamed ? 0 : UINT64_MAX);
    dmlsplit_plan *plan = create(s, split);
    if (plan == NULL)
        return;
    for (int d = 0; d < RANK; d++)
        part_size *= (size_t)((uint32_t)d == s->axis ? s->length : s->sizes[d]);
    dmlsplit_plan_whole_range(plan, &begin, &end);
    const uint64_t part_count = s->sizes[s->axis] / s->length;
    memory whole = allocate((size_t)(end - begin) + skew), block = allocate(part_size * part_count + skew);
    for (uint64_t i = 0; i < part_count; i++)
        parts[i] = block.bytes + skew + i * part_size;
    paint(split ? &whole : &block);
    memory *written = split ? &block : &whole;
    const dms_buffers buffers = {whole.bytes + skew - begin, parts};
    memset(written->bytes, SPOILT, written->size);
    CHECK_EQUAL(split ? dmlsplit_split(plan, buffers.whole, parts) : dmlsplit_join(plan, (const void *const *)parts, buffers.whole), DMLSPLIT_OK);
    memcpy(written->expected, written->bytes, written->size);
    run_slices(plan, &buffers, written, count);
    release(&whole);
    release(&block);
    dmlsplit_plan_destroy(plan);
}

int main(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (uint64_t count = 1; count <= MOST_SLICES; count += 1 + count / 3)
            for (int draw = 0; draw < 4; draw++) {
                check_case = shapes[i].name;
                run_shape(&shapes[i], true, count, (size_t)draw * 21, draw % 2 == 0);
                if (shapes[i].whole[0] != 0 || shapes[i].whole[2] == 0)     /* a broadcast whole cannot be written */
                    run_shape(&shapes[i], false, count, (size_t)draw * 21, draw % 2 == 0);
            }
    return check_report();
}
