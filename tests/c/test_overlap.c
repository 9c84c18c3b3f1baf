/* test_overlap.c - the overlap decision against marking every byte */
#include "check.h"
#include "dms_internal.h"

#include <string.h>

enum { RANK = 4, MOST_SIZE = 4, MOST_STRIDE = 40, MOST_BYTES = RANK * MOST_SIZE * MOST_STRIDE * 2 + 64 };

typedef struct layout {
    uint32_t rank;
    uint64_t sizes[RANK];
    int64_t strides[RANK];
    uint64_t element_size;
} layout;

static bool overlaps_by_marking(const layout *l)
{
    static unsigned char marked[MOST_BYTES];
    uint64_t index[RANK] = {0};
    memset(marked, 0, sizeof marked);
    for (;;) {
        int64_t at = MOST_BYTES / 2;
        for (uint32_t d = 0; d < l->rank; d++)
            at += (int64_t)index[d] * l->strides[d];
        for (uint64_t b = 0; b < l->element_size; b++)
            if (marked[at + (int64_t)b]++)
                return true;
        uint32_t d = 0;
        while (d < l->rank && ++index[d] == l->sizes[d])
            index[d++] = 0;
        if (d == l->rank)
            return false;
    }
}

static void random_layouts(void)
{
    int counts[2] = {0, 0};
    for (int i = 0; i < 200000; i++) {
        layout l;
        uint32_t budget = 1u << 20;
        l.rank = (uint32_t)(1 + random_below(RANK));
        l.element_size = 1 + random_below(5);
        for (uint32_t d = 0; d < l.rank; d++) {
            l.sizes[d] = 1 + random_below(MOST_SIZE);
            l.strides[d] = (int64_t)random_below(2 * MOST_STRIDE + 1) - MOST_STRIDE;
        }
        const bool overlaps = overlaps_by_marking(&l);
        counts[overlaps]++;
        CHECK_EQUAL(dms_check_overlap(l.rank, l.sizes, l.strides, l.element_size, &budget), overlaps ? DMLSPLIT_OUTPUT_OVERLAP : DMLSPLIT_OK);
    }
    CHECK(counts[false] > 10000 && counts[true] > 10000);
}

static void budget(void)
{
    const uint64_t sizes[] = {3, 4};
    const int64_t interleaved[] = {3, 4};           /* 0 3 6, 4 7 10, 8 11 14, 12 15 18: disjoint and not nested */
    const int64_t nested[] = {40, 10};
    uint32_t left = 0;
    CHECK_EQUAL(dms_check_overlap(2, sizes, interleaved, 1, &left), DMLSPLIT_OVERLAP_UNDECIDED);
    CHECK_EQUAL(dms_check_overlap(2, sizes, nested, 10, &left), DMLSPLIT_OK);
    left = 1000;
    CHECK_EQUAL(dms_check_overlap(2, sizes, interleaved, 1, &left), DMLSPLIT_OK);
    CHECK(left < 1000);
}

/* A search decides with as many steps as it needs, and is given up with one less. */
static void steps_needed(void)
{
    enum { MANY = 1 << 20 };
    int searches = 0;
    check_case = "steps needed";
    for (int i = 0; i < 20000; i++) {
        uint64_t sizes[RANK];
        int64_t strides[RANK];
        const uint32_t rank = (uint32_t)(1 + random_below(RANK));
        const uint64_t element_size = 1 + random_below(5);
        uint32_t left = MANY;
        for (uint32_t d = 0; d < rank; d++) {
            sizes[d] = 1 + random_below(MOST_SIZE);
            strides[d] = (int64_t)random_below(2 * MOST_STRIDE + 1) - MOST_STRIDE;
        }
        const dmlsplit_status status = dms_check_overlap(rank, sizes, strides, element_size, &left);
        const uint32_t needed = MANY - left;
        if (needed == 0)
            continue;
        searches++;
        left = needed;
        CHECK_EQUAL(dms_check_overlap(rank, sizes, strides, element_size, &left), status);
        CHECK_EQUAL(left, 0);
        left = needed - 1;
        CHECK_EQUAL(dms_check_overlap(rank, sizes, strides, element_size, &left), DMLSPLIT_OVERLAP_UNDECIDED);
        CHECK_EQUAL(left, 0);
    }
    CHECK(searches > 1000);
}

static void extremes(void)
{
    const uint64_t sizes[] = {2, 2};
    const int64_t far[] = {INT64_MAX / 2, INT64_MAX / 2 - 1};   /* they are 1 apart; too far out for a search without integers of 128 bits */
    const int64_t ignored[] = {INT64_MIN, 8};
    const uint64_t one[] = {1, 2};
    uint32_t left = 1000;
    CHECK(dms_check_overlap(2, sizes, far, 2, &left) != DMLSPLIT_OK);
    CHECK_EQUAL(dms_check_overlap(2, one, ignored, 8, &left), DMLSPLIT_OK);
}

int main(void)
{
    random_layouts();
    budget();
    steps_needed();
    extremes();
    return check_report();
}
