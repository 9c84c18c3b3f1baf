/* test_fold.c - folding: each case that folds has a twin that must not */
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
    dms_fold(&s);

    check_case = c->name;
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

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        run_case(&cases[i]);
    return check_report();
}
