/* test_fold.c - folding: each case that folds has a twin that must not; and which rewritings are taken for such that keep every address */
#include "check.h"
#include "dms_internal.h"

#include <string.h>

enum { RANK = 5, OPERANDS = 3 };
#define NONE DMS_NO_AXIS

typedef struct tensor {
    uint64_t length;
    int64_t strides[RANK];
    int64_t offset;
} tensor;

typedef struct space {
    uint32_t rank, axis;
    uint64_t element_size;
    uint64_t sizes[RANK];
    tensor operands[OPERANDS];          /* length 0: no more */
} space;

typedef struct fold_case {
    const char *name;
    space given, expected;              /* expected sizes: that of the axis is not looked at */
} fold_case;

static const fold_case cases[] = {
    {"size 1 is dropped",
     {3, NONE, 4, {1, 3, 1}, {{1, {99, 8, -7}, 0}, {1, {5, 12, 0}, 0}}},
     {1, NONE, 4, {3}, {{1, {8}, 0}, {1, {12}, 0}}}},
    {"size 2 is not",
     {2, NONE, 4, {2, 3}, {{1, {99, 8}, 0}, {1, {5, 12}, 0}}},
     {2, NONE, 4, {2, 3}, {{1, {99, 8}, 0}, {1, {5, 12}, 0}}}},
    {"packed in both: one run",
     {3, NONE, 4, {2, 3, 5}, {{1, {60, 20, 4}, 0}, {1, {60, 20, 4}, 0}}},
     {0, NONE, 120, {0}, {{1, {0}, 0}, {1, {0}, 0}}}},
    {"padded rows in one: the run is a row",
     {3, NONE, 4, {2, 3, 5}, {{1, {60, 20, 4}, 0}, {1, {72, 24, 4}, 0}}},
     {1, NONE, 20, {6}, {{1, {20}, 0}, {1, {24}, 0}}}},
    {"rows padded differently: no merge",
     {3, NONE, 4, {2, 3, 5}, {{1, {60, 20, 4}, 0}, {1, {80, 24, 4}, 0}}},
     {2, NONE, 20, {2, 3}, {{1, {60, 20}, 0}, {1, {80, 24}, 0}}}},
    {"the same transposition in both folds away",
     {3, NONE, 2, {2, 3, 5}, {{1, {2, 20, 4}, 0}, {1, {2, 20, 4}, 0}}},
     {0, NONE, 60, {0}, {{1, {0}, 0}, {1, {0}, 0}}}},
    {"a transposition in one: two loops, the first operand's order",
     {2, NONE, 2, {3, 5}, {{1, {2, 6}, 0}, {1, {10, 2}, 0}}},
     {2, NONE, 2, {5, 3}, {{1, {6, 2}, 0}, {1, {2, 10}, 0}}}},
    {"reversed in both: turned, one run",
     {2, NONE, 4, {3, 5}, {{1, {-20, -4}, 0}, {1, {-20, -4}, 0}}},
     {0, NONE, 60, {0}, {{1, {0}, -56}, {1, {0}, -56}}}},
    {"reversed in the first: its sign is turned",
     {1, NONE, 4, {5}, {{1, {-4}, 0}, {1, {4}, 0}}},
     {1, NONE, 4, {5}, {{1, {4}, -16}, {1, {-4}, 16}}}},
    {"reversed in the second: nothing to turn",
     {1, NONE, 4, {5}, {{1, {4}, 0}, {1, {-4}, 0}}},
     {1, NONE, 4, {5}, {{1, {4}, 0}, {1, {-4}, 0}}}},
    {"reversed in one dimension of both: folds after turning",
     {2, NONE, 4, {3, 5}, {{1, {-20, 4}, 0}, {1, {-20, 4}, 0}}},
     {0, NONE, 60, {0}, {{1, {0}, -40}, {1, {0}, -40}}}},
    {"broadcast dimensions merge with each other",
     {3, NONE, 4, {2, 3, 5}, {{1, {60, 20, 4}, 0}, {1, {0, 0, 4}, 0}}},
     {1, NONE, 20, {6}, {{1, {20}, 0}, {1, {0}, 0}}}},
    {"broadcast outside of a run does not merge with it",
     {2, NONE, 4, {3, 5}, {{1, {20, 4}, 0}, {1, {0, 4}, 0}}},
     {1, NONE, 20, {3}, {{1, {20}, 0}, {1, {0}, 0}}}},
    {"the axis takes the dimensions that it continues",
     {3, 1, 4, {2, 6, 5}, {{6, {120, 20, 4}, 0}, {2, {40, 20, 4}, 0}, {4, {80, 20, 4}, 0}}},
     {2, 1, 8, {2}, {{15, {120, 8}, 0}, {5, {40, 8}, 0}, {10, {80, 8}, 0}}}},
    {"a padded part keeps it from that, but not from a wider element",
     {3, 1, 4, {2, 6, 5}, {{6, {120, 20, 4}, 0}, {2, {48, 24, 4}, 0}, {4, {80, 20, 4}, 0}}},
     {2, 1, 20, {2}, {{6, {120, 20}, 0}, {2, {48, 24}, 0}, {4, {80, 20}, 0}}}},
    {"the stride of an axis of length 1 does not matter",
     {2, 0, 4, {3, 5}, {{3, {20, 4}, 0}, {1, {777, 4}, 0}, {2, {20, 4}, 0}}},
     {1, 0, 4, {0}, {{15, {4}, 0}, {5, {4}, 0}, {10, {4}, 0}}}},
    {"outer dimensions do not take the axis",
     {2, 1, 4, {3, 6}, {{6, {24, 4}, 0}, {2, {8, 4}, 0}, {4, {16, 4}, 0}}},
     {2, 1, 8, {3}, {{3, {24, 8}, 0}, {1, {8, 8}, 0}, {2, {16, 8}, 0}}}},
    {"other dimensions merge across the axis, which comes last",
     {3, 1, 1, {4, 3, 5}, {{3, {5, 32, 1}, 0}, {1, {10, 64, 2}, 0}, {2, {10, 64, 2}, 0}}},
     {2, 1, 1, {20}, {{3, {1, 32}, 0}, {1, {2, 64}, 0}, {2, {2, 64}, 0}}}},
    {"channels first: all dimensions join the axis",
     {3, 0, 1, {3, 4, 5}, {{3, {20, 5, 1}, 0}, {1, {40, 10, 2}, 0}, {2, {40, 10, 2}, 0}}},
     {1, 0, 1, {0}, {{60, {1}, 0}, {20, {2}, 0}, {40, {2}, 0}}}},
    {"channels last: pixels merge, the channels stay the axis",
     {3, 2, 1, {4, 5, 3}, {{3, {15, 3, 1}, 0}, {1, {5, 1, 1}, 0}, {2, {10, 2, 1}, 0}}},
     {2, 1, 1, {20}, {{3, {3, 1}, 0}, {1, {1, 1}, 0}, {2, {2, 1}, 0}}}},
    {"pieces of whole pairs are of wider elements, padded rows or not",
     {2, 1, 4, {3, 6}, {{6, {24, 4}, 0}, {2, {12, 4}, 0}, {4, {16, 4}, 0}}},
     {2, 1, 8, {3}, {{3, {24, 8}, 0}, {1, {12, 8}, 0}, {2, {16, 8}, 0}}}},
    {"an odd piece: of none",
     {2, 1, 4, {3, 6}, {{6, {24, 4}, 0}, {3, {12, 4}, 0}, {3, {12, 4}, 0}}},
     {2, 1, 4, {3}, {{6, {24, 4}, 0}, {3, {12, 4}, 0}, {3, {12, 4}, 0}}}},
    {"pieces with gaps between their elements: of none",
     {2, 1, 4, {3, 6}, {{6, {24, 4}, 0}, {2, {8, 4}, 0}, {4, {32, 8}, 0}}},
     {2, 1, 4, {3}, {{6, {24, 4}, 0}, {2, {8, 4}, 0}, {4, {32, 8}, 0}}}},
    {"elements are not wider than 16 bytes,",
     {2, 1, 2, {3, 64}, {{64, {128, 2}, 0}, {32, {64, 2}, 0}, {32, {64, 2}, 0}}},
     {2, 1, 16, {3}, {{8, {128, 16}, 0}, {4, {64, 16}, 0}, {4, {64, 16}, 0}}}},
    {"and no power of two that they were not",
     {2, 1, 3, {5, 4}, {{4, {12, 3}, 0}, {2, {6, 3}, 0}, {2, {6, 3}, 0}}},
     {2, 1, 3, {5}, {{4, {12, 3}, 0}, {2, {6, 3}, 0}, {2, {6, 3}, 0}}}},
    {"the axis is not turned",
     {1, 0, 4, {3}, {{3, {-4}, 0}, {1, {-4}, 0}, {2, {-4}, 0}}},
     {1, 0, 4, {0}, {{3, {-4}, 0}, {1, {-4}, 0}, {2, {-4}, 0}}}},
    {"the second operand decides between equal strides of the first,",
     {2, NONE, 1, {3, 5}, {{1, {8, 8}, 0}, {1, {16, 64}, 0}}},
     {2, NONE, 1, {5, 3}, {{1, {8, 8}, 0}, {1, {64, 16}, 0}}}},
    {"and no other",
     {2, NONE, 1, {3, 5}, {{1, {8, 8}, 0}, {1, {16, 16}, 0}, {1, {32, 64}, 0}}},
     {2, NONE, 1, {3, 5}, {{1, {8, 8}, 0}, {1, {16, 16}, 0}, {1, {32, 64}, 0}}}},
    {"a span beyond 64 bits continues nothing",
     {2, NONE, 1, {2, 4}, {{1, {0, INT64_C(1) << 62}, 0}, {1, {4, 1}, 0}}},
     {2, NONE, 1, {4, 2}, {{1, {INT64_C(1) << 62, 0}, 0}, {1, {1, 4}, 0}}}},
};

static uint64_t count_operands(const space *s)
{
    uint64_t count = 0;
    while (count < OPERANDS && s->operands[count].length != 0)
        count++;
    return count;
}

static void run_case(const fold_case *c)
{
    int64_t strides[OPERANDS][RANK];
    dms_operand operands[OPERANDS];
    dms_space s;
    memset(&s, 0, sizeof s);
    s.rank = c->given.rank;
    s.axis = c->given.axis;
    s.element_size = c->given.element_size;
    memcpy(s.sizes, c->given.sizes, sizeof c->given.sizes);
    s.operand_count = count_operands(&c->given);
    s.operands = operands;
    for (uint64_t i = 0; i < s.operand_count; i++) {
        memcpy(strides[i], c->given.operands[i].strides, sizeof strides[i]);
        operands[i].length = c->given.operands[i].length;
        operands[i].offset = c->given.operands[i].offset;
        operands[i].strides = strides[i];
    }
    dms_trace trace;
    trace.count = 0;
    s.trace = &trace;
    dms_fold(&s);

    check_case = c->name;
    CHECK(trace.count <= DMS_MOST_REWRITINGS);
    trace.count = 0;
    dms_fold(&s);                       /* once more: there is nothing left to do */
    CHECK_EQUAL(trace.count, 0);
    CHECK_EQUAL(s.axis, c->expected.axis);
    CHECK_EQUAL(s.element_size, c->expected.element_size);
    if (!CHECK_EQUAL(s.rank, c->expected.rank))
        return;
    for (uint32_t d = 0; d < s.rank; d++)
        if (d != s.axis)
            CHECK_EQUAL(s.sizes[d], c->expected.sizes[d]);
    for (uint64_t i = 0; i < s.operand_count; i++) {
        const tensor *expected = &c->expected.operands[i];
        CHECK_EQUAL(operands[i].length, expected->length);
        CHECK_EQUAL(operands[i].offset, expected->offset);
        for (uint32_t d = 0; d < s.rank; d++)
            if (d != s.axis || operands[i].length > 1)
                CHECK_EQUAL(operands[i].strides[d], expected->strides[d]);
    }
}

/* ---- Rewritings, right and wrong ---- */

enum { DRAWS = 400000, SIDE = 4, MOST_PAIRS = SIDE * SIDE * SIDE * 16, KINDS = DMS_WIDEN + 1 };

/* A byte of the whole, and the one of a part that stands for it. */
typedef struct pair {
    int64_t whole, part;
} pair;

typedef struct drawn {
    dms_space space;
    dms_operand operands[2];            /* the whole, a part of it */
    int64_t strides[2][DMLSPLIT_MAX_RANK];
} drawn;

static int compare_pairs(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    return x->whole != y->whole ? (x->whole > y->whole) - (x->whole < y->whole) : (x->part > y->part) - (x->part < y->part);
}

/* All pairs, sorted: which bytes go where, whatever the order. */
static size_t list_pairs(const drawn *d, int64_t place, pair *pairs)
{
    uint64_t index[DMLSPLIT_MAX_RANK] = {0};
    const dms_space *s = &d->space;
    size_t count = 0;
    for (;;) {
        pair p = {place + d->operands[0].offset, d->operands[1].offset};
        for (uint32_t i = 0; i < s->rank; i++) {
            p.whole += (int64_t)index[i] * d->strides[0][i];
            p.part += (int64_t)index[i] * d->strides[1][i];
        }
        for (uint64_t b = 0; b < s->element_size && count < MOST_PAIRS; b++)
            pairs[count++] = (pair){p.whole + (int64_t)b, p.part + (int64_t)b};
        uint32_t i = s->rank;
        while (i-- > 0) {
            if (++index[i] < (i == s->axis ? d->operands[1].length : s->sizes[i]))
                break;
            index[i] = 0;
        }
        if (i == UINT32_MAX)
            break;
    }
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    return count;
}

static void own(drawn *d)
{
    d->space.operands = d->operands;
    for (int i = 0; i < 2; i++)
        d->operands[i].strides = d->strides[i];
}

/* Strides that often continue each other. */
static void draw_space(drawn *d)
{
    dms_space *s = &d->space;
    memset(d, 0, sizeof *d);
    own(d);
    s->rank = 1 + (uint32_t)random_below(3);
    s->axis = random_below(3) == 0 ? DMS_NO_AXIS : (uint32_t)random_below(s->rank);
    s->element_size = 1 + random_below(3);
    s->operand_count = 2;
    for (uint32_t i = 0; i < s->rank; i++)
        s->sizes[i] = 1 + random_below(SIDE);
    d->operands[0].length = s->axis != DMS_NO_AXIS ? 1 + random_below(SIDE) : 1;
    d->operands[1].length = s->axis != DMS_NO_AXIS ? 1 + random_below(d->operands[0].length) : 1;
    for (int t = 0; t < 2; t++) {
        int64_t next = (int64_t)s->element_size;
        for (uint32_t i = s->rank; i-- > 0;) {
            d->strides[t][i] = random_below(5) == 0 ? (int64_t)random_below(17) - 8 : random_below(6) == 0 ? -next : next;
            next *= (int64_t)(i == s->axis ? d->operands[t].length : s->sizes[i]);
        }
    }
}

/* What is accepted addresses the same pairs; a rewriting of each kind is accepted at times, and refused. */
static void rewritings(void)
{
    static pair before[MOST_PAIRS], after[MOST_PAIRS];
    uint64_t taken[KINDS] = {0}, refused[KINDS] = {0};
    for (int n = 0; n < DRAWS; n++) {
        drawn d;
        dms_trace trace;
        draw_space(&d);
        const uint64_t room = d.operands[0].length - d.operands[1].length;
        const int64_t place = d.space.axis != DMS_NO_AXIS ? (int64_t)random_below(room + 1) * d.strides[0][d.space.axis] : 0;
        const size_t count = list_pairs(&d, place, before);
        dms_rewriting *const r = &trace.rewritings[0];
        memset(r, 0, sizeof *r);
        trace.count = 1;
        r->kind = (uint8_t)random_below(KINDS);
        r->outer = (uint8_t)random_below(3);
        r->inner = (uint8_t)random_below(3);
        r->count = (uint8_t)random_below(4);
        for (uint8_t i = 0; i < r->count; i++)
            r->order[i] = (uint8_t)(random_below(2) ? i : random_below(3));
        if (dms_replay(&d.space, &trace) != NULL) {
            refused[r->kind]++;
            continue;
        }
        taken[r->kind]++;
        const size_t rewritten = list_pairs(&d, place, after);
        if (!CHECK_EQUAL(rewritten, count) || !CHECK(memcmp(before, after, count * sizeof *before) == 0))
            printf("kind %d, draw %d\n", r->kind, n);
    }
    for (int kind = 0; kind < KINDS; kind++)
        CHECK(taken[kind] > 0 && refused[kind] > 0);
}

/* No step names a dimension that is not there, be its strides 0 and its size 1. */
static void dimensions_beyond(void)
{
    enum { THERE = 2 };
    check_case = "dimensions beyond";
    for (uint32_t kind = 0; kind < KINDS; kind++)
        for (uint32_t beyond = 0; beyond < 2; beyond++)
            for (int is_inner = 0; is_inner < 2; is_inner++) {
                dms_trace trace;
                drawn d;
                memset(&d, 0, sizeof d);
                memset(&trace, 0, sizeof trace);
                own(&d);
                d.space.rank = THERE;
                d.space.axis = kind == DMS_WIDEN ? THERE - 1 + beyond : DMS_NO_AXIS;
                d.space.element_size = kind == DMS_ABSORB || kind == DMS_WIDEN ? 1 : 0;
                d.space.operand_count = 2;
                for (int i = 0; i <= THERE; i++) {
                    d.space.sizes[i] = 1;
                    d.strides[0][i] = d.strides[1][i] = (int64_t)d.space.element_size;
                }
                d.operands[0].length = d.operands[1].length = 2;
                const uint8_t dimension = (uint8_t)(THERE - 1 + beyond);
                trace.count = 1;
                trace.rewritings[0].kind = (uint8_t)kind;
                trace.rewritings[0].outer = is_inner ? 0 : dimension;
                trace.rewritings[0].inner = is_inner ? dimension : 0;
                trace.rewritings[0].count = 1;
                trace.rewritings[0].order[0] = dimension;
                const bool is_named = kind == DMS_MERGE || kind == DMS_REORDER || kind == DMS_WIDEN || !is_inner;
                CHECK_EQUAL(dms_replay(&d.space, &trace) == NULL, beyond == 0 || !is_named);
            }
}

int main(void)
{
    dimensions_beyond();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        run_case(&cases[i]);
    check_case = "rewritings";
    rewritings();
    return check_report();
}
