/* split.c - a tensor of 6 rows and 2 columns, split into 2, 1 and 3 rows
 *
 * Compile it together with every .c file below csrc/, with include/ as an include path.
 */
#include "dmlsplit.h"

#include <stdio.h>

int main(void)
{
    const float whole[6][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}};
    float a[2][2], b[1][2], c[3][2];
    void *parts[] = {a, b, c};

    const uint64_t sizes[] = {6, 2}, lengths[] = {2, 1, 3};
    dmlsplit_geometry geometry = {0};
    geometry.struct_size = sizeof geometry;
    geometry.direction = DMLSPLIT_SPLIT;
    geometry.element_size = sizeof(float);
    geometry.rank = 2;
    geometry.axis = 0;
    geometry.part_count = 3;
    geometry.sizes = sizes;
    geometry.lengths = lengths;

    dmlsplit_plan *plan;
    dmlsplit_status status = dmlsplit_plan_create(&geometry, &plan, NULL);
    if (status == DMLSPLIT_OK)
        status = dmlsplit_split(plan, whole, parts);
    dmlsplit_plan_destroy(plan);
    if (status != DMLSPLIT_OK) {
        fprintf(stderr, "split: %s\n", dmlsplit_status_string(status));
        return 1;
    }

    for (size_t part = 0; part < 3; part++) {
        const float *values = parts[part];
        printf("part %zu:", part);
        for (size_t i = 0; i < 2 * lengths[part]; i++)
            printf(" %g", values[i]);
        printf("\n");
    }
    return 0;
}
