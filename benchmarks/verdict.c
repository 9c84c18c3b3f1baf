/* verdict.c - how long a verdict takes
 *
 *     cc -O2 -Iinclude benchmarks/verdict.c csrc/dms_verdict*.c csrc/dms_text.c -o verdict && ./verdict
 */
#define _POSIX_C_SOURCE 199309L
#include "dmlsplit_directml.h"

#include <stdio.h>
#include <time.h>

enum { TURNS = 400, RUNS = 500, MOST_PARTS = 64, MOST_RANK = 8 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The least of many means, in nanoseconds: turns are shorter than what a scheduler gives a process at a time. */
static double least(const DML_SPLIT_OPERATOR_DESC *split, uint32_t target, int *ok)
{
    dmlsplit_verdict verdict = {0};
    double best = 1e9;
    verdict.struct_size = sizeof verdict;
    for (int turn = 0; turn < TURNS; turn++) {
        const double start = seconds();
        for (int i = 0; i < RUNS; i++)
            dmlsplit_validate_split(split, target, &verdict);
        const double each = (seconds() - start) / RUNS * 1e9;
        best = each < best ? each : best;
    }
    *ok = verdict.ok;
    return best;
}

/* Times a split into equal parts, each with a tensor of its own; of more dimensions every one above size 1. */
static void time_split(uint32_t rank, uint32_t count, int strided)
{
    static const uint32_t sizes[MOST_RANK] = {2, 2, 2, 2, 2, 4, 8, 8};
    static uint32_t whole[MOST_RANK], part[MOST_PARTS][MOST_RANK], strides[MOST_PARTS][MOST_RANK];
    DML_BUFFER_TENSOR_DESC tensors[MOST_PARTS];
    DML_TENSOR_DESC outputs[MOST_PARTS];
    const uint32_t first = MOST_RANK - rank, axis = rank - 3;
    uint64_t bytes = 4;
    int by_level, by_release;
    for (uint32_t d = 0; d < rank; d++) {
        whole[d] = sizes[first + d] * (d == axis ? count : 1);
        bytes *= whole[d];
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t stride = 2;            /* a gap after every row */
        for (uint32_t d = rank; d-- > 0;) {
            part[i][d] = sizes[first + d];
            strides[i][d] = stride;
            stride *= part[i][d];
        }
        const DML_BUFFER_TENSOR_DESC t = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, rank, part[i], strided ? strides[i] : NULL, bytes * 2, 0};
        const DML_TENSOR_DESC output = {DML_TENSOR_TYPE_BUFFER, &tensors[i]};
        tensors[i] = t;
        outputs[i] = output;
    }
    const DML_BUFFER_TENSOR_DESC in = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, rank, whole, NULL, bytes, 0};
    const DML_TENSOR_DESC input = {DML_TENSOR_TYPE_BUFFER, &in};
    const DML_SPLIT_OPERATOR_DESC split = {&input, count, outputs, axis};
    const double level = least(&split, 0x6400, &by_level);
    const double release = least(&split, dmlsplit_find_release("1.15.4"), &by_release);
    printf("%2u parts of %u dimensions, %-8s by level %5.0f ns, by release %5.0f ns%s\n", count, rank, strided ? "strided:" : "packed:",
           level, release, by_level && by_release ? "" : " (not ok)");
}

int main(void)
{
    static const uint32_t parts[] = {3, 16, MOST_PARTS};
    for (uint32_t rank = 4; rank <= MOST_RANK; rank += 4)
        for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
            for (int strided = 0; strided < 2; strided++)
                time_split(rank, parts[k], strided);
    return 0;
}
