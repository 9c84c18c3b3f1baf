/* directml.c - a DML_SPLIT_OPERATOR_DESC executed on the CPU
 *
 * The fast path for a program that has DirectML's own structs: compile the descriptor to a plan once, and run the plan on any buffers. If you
 * have DirectML.h, include it before dmlsplit_directml.h; without it, the header defines the structs itself.
 *
 * Compile it together with every .c file below csrc/, with include/ as an include path.
 */
#include "dmlsplit_directml.h"

#include <stdio.h>

int main(void)
{
    const float input[6][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}};
    float top[2][2], bottom[4][2];
    void *outputs[] = {top, bottom};

    /* The same descriptor as in examples/device.py. */
    const uint32_t whole_sizes[] = {1, 1, 6, 2}, top_sizes[] = {1, 1, 2, 2}, bottom_sizes[] = {1, 1, 4, 2};
    const DML_BUFFER_TENSOR_DESC buffers[] = {
        {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, whole_sizes, NULL, sizeof input, 0},
        {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, top_sizes, NULL, sizeof top, 0},
        {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, bottom_sizes, NULL, sizeof bottom, 0},
    };
    const DML_TENSOR_DESC input_tensor = {DML_TENSOR_TYPE_BUFFER, &buffers[0]};
    const DML_TENSOR_DESC output_tensors[] = {{DML_TENSOR_TYPE_BUFFER, &buffers[1]}, {DML_TENSOR_TYPE_BUFFER, &buffers[2]}};
    const DML_SPLIT_OPERATOR_DESC split = {&input_tensor, 2, output_tensors, 2};

    dmlsplit_plan *plan;
    dmlsplit_fault fault;
    dmlsplit_status status = dmlsplit_plan_create_dml_split(&split, 0, &plan, &fault);
    if (status == DMLSPLIT_OK)
        status = dmlsplit_split(plan, input, outputs);
    dmlsplit_plan_destroy(plan);
    if (status != DMLSPLIT_OK) {
        fprintf(stderr, "directml: %s\n", dmlsplit_status_string(status));
        return 1;
    }

    printf("top:   ");
    for (int i = 0; i < 4; i++)
        printf(" %g", top[i / 2][i % 2]);
    printf("\nbottom:");
    for (int i = 0; i < 8; i++)
        printf(" %g", bottom[i / 2][i % 2]);
    printf("\n");
    return 0;
}
