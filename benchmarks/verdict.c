/* verdict.c - how long a verdict takes
 *
 *     cc -O2 -Iinclude benchmarks/verdict.c csrc/dms_verdict.c csrc/dms_text.c -o verdict && ./verdict
 */
#define _POSIX_C_SOURCE 199309L
#include "dmlsplit_directml.h"

#include <stdio.h>
#include <time.h>

enum { RUNS = 200000, MOST_PARTS = 64 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The least of ten means, in nanoseconds. */
static double least(const DML_SPLIT_OPERATOR_DESC *split, uint32_t target, int *ok)
{
    dmlsplit_verdict verdict = {0};
    double best = 1e9;
    verdict.struct_size = sizeof verdict;
    for (int turn = 0; turn < 10; turn++) {
        const double start = seconds();
        for (int i = 0; i < RUNS / 10; i++)
            dmlsplit_validate_split(split, target, &verdict);
        const double each = (seconds() - start) / (RUNS / 10) * 1e9;
        best = each < best ? each : best;
    }
    *ok = verdict.ok;
    return best;
}

int main(void)
{
    static const uint32_t parts_of[] = {3, 16, MOST_PARTS};
    for (int strided = 0; strided < 2; strided++)
        for (size_t k = 0; k < sizeof parts_of / sizeof parts_of[0]; k++) {
            const uint32_t count = parts_of[k], last = 5, strides[] = {1, 1, 1, 1, 1, 8 * MOST_PARTS * 8, 16, 1};
            uint32_t whole[] = {1, 1, 1, 1, 1, 4, 8, 8}, part[] = {1, 1, 1, 1, 1, 4, 8, 8};
            whole[last] = part[last] * count;
            DML_BUFFER_TENSOR_DESC in = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 8, whole, NULL, 4ull * 64 * whole[last], 0};
            DML_BUFFER_TENSOR_DESC out = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 8, part, strided ? strides : NULL, 1 << 20, 0};
            const DML_TENSOR_DESC input = {DML_TENSOR_TYPE_BUFFER, &in};
            DML_TENSOR_DESC outputs[MOST_PARTS];
            for (uint32_t i = 0; i < count; i++)
                outputs[i] = (DML_TENSOR_DESC){DML_TENSOR_TYPE_BUFFER, &out};
            const DML_SPLIT_OPERATOR_DESC split = {&input, count, outputs, last};
            int by_level, by_release;
            const double level = least(&split, 0x6400, &by_level);
            const double release = least(&split, dmlsplit_find_release("1.15.4"), &by_release);
            printf("%2u parts of 8 dimensions, %-7s by level %5.0f ns, by release %5.0f ns%s\n", count, strided ? "strided:" : "packed:",
                   level, release, by_level && by_release ? "" : " (not ok)");
        }
    return 0;
}
