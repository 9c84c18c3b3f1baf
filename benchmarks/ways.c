/* ways.c - times the library as one way of building it has made it; benchmarks/ways.py builds and asks
 *
 * Reads lines of numbers: a case, "rank sizes... axis element_size join count lengths...", or "0 nanoseconds", a turn of
 * about so long at the case. Answers a case with the plan's description, and a turn with nanoseconds a call.
 */
#define _POSIX_C_SOURCE 200112L
#include "dmlsplit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_PARTS = 4096, MOST_RANK = 8, LINE = 64 };

static dmlsplit_plan *plan;
static void *whole, *parts[MOST_PARTS];
static int join;

static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static uint64_t number(void)
{
    uint64_t found;
    if (scanf("%" SCNu64, &found) != 1)
        exit(0);
    return found;
}

static void *filled(uint64_t bytes)
{
    void *found;
    if (posix_memalign(&found, LINE, bytes ? bytes : 1))
        exit(3);
    return memset(found, 1, bytes);
}

static void take_case(uint32_t rank)
{
    static uint64_t sizes[MOST_RANK], lengths[MOST_PARTS];
    dmlsplit_geometry geometry = {0};
    uint64_t row = 1;
    char text[1024];
    if (rank > MOST_RANK)
        exit(2);
    for (uint32_t d = 0; d < rank; d++)
        row *= sizes[d] = number();
    geometry.struct_size = sizeof geometry;
    geometry.rank = rank;
    geometry.axis = (uint32_t)number();
    geometry.element_size = (uint32_t)number();
    geometry.direction = (join = (int)number()) ? DMLSPLIT_JOIN : DMLSPLIT_SPLIT;
    geometry.part_count = number();
    geometry.sizes = sizes;
    geometry.lengths = lengths;
    if (geometry.axis >= rank || geometry.part_count > MOST_PARTS)
        exit(2);
    row = row * geometry.element_size / sizes[geometry.axis];
    whole = filled(row * sizes[geometry.axis]);
    for (uint64_t p = 0; p < geometry.part_count; p++)
        parts[p] = filled(row * (lengths[p] = number()));
    if (dmlsplit_plan_create(&geometry, &plan, NULL) != DMLSPLIT_OK)
        exit(2);
    dmlsplit_plan_describe(plan, text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    puts(text);
}

static void run(void)
{
    if (join ? dmlsplit_join(plan, (const void *const *)parts, whole) : dmlsplit_split(plan, whole, parts))
        exit(2);
}

static double turn(double most)
{
    uint64_t calls = 0, some = 1;
    double taken;
    run(); /* the turn before, of another process, has left its own cache lines */
    const double start = nanoseconds();
    do {
        for (uint64_t i = 0; i < some; i++)
            run();
        calls += some;
        taken = nanoseconds() - start;
        some = taken < most / 16 ? 2 * some : some;
    } while (taken < most);
    return taken / (double)calls;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (;;) {
        const uint64_t rank = number();
        if (rank)
            take_case((uint32_t)rank);
        else
            printf("%.3f\n", turn((double)number()));
    }
}
