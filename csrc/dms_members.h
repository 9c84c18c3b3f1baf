/* dms_members.h - the structs of all operators, member by member, from one table */
#pragma once

#include "dmlsplit_directml.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A count above its limit is taken for garbage, and the array is not read. */
#define DMS_MOST_ENTRIES 64u            /* of arrays of numbers: DimensionCount, of Sizes and Strides */
#define DMS_MOST_STRUCTS 1048576u       /* of arrays of structs: OutputCount of a Split, InputCount of a Join; the counts of a graph */
#define DMS_MOST_FUSED 8u               /* nested fused operators */
#define DMS_MOST_FUSED_IN_ALL 4096u     /* operators fused into one, directly or not, and entries of their arrays of tensors */

/* members has those of the struct in order, each behind its kind.
 *
 * T, R: a pointer to a tensor, to an array of tensors. O, P: to an operator without tensors, to an array of them. S: to a DML_SCALE_BIAS.
 * u, i, f: to an array of UINT, INT, FLOAT. C: a UINT that counts the entries of the arrays behind it; U: any other UINT, or a BOOL; I: INT;
 * F: FLOAT; Z: DML_SIZE_2D; D: DML_TENSOR_DATA_TYPE; E: another enum, the letter behind it says which; X: a scalar of the D before it. */
typedef struct dms_operator_row {
    uint32_t type;
    const char *name, *members;
} dms_operator_row;

typedef struct dms_struct_member {
    const char *rest;                   /* of the row's members */
    char kind, which;
    int is_pointer;
    const char *name;                   /* not terminated: length characters */
    size_t length, offset, size;        /* bytes in the struct */
} dms_struct_member;

/* Returns the row of the operator with this type, NULL if no operator up to feature level 6_4 has it. */
const dms_operator_row *dms_find_operator(uint32_t type);

/* Returns the names of an enum's values 0, 1, 2, ..., without prefix, separated by spaces. which: that of a
 * dms_struct_member of kind E. */
const char *dms_enum_names(char which);

/* Returns the position before the struct's first member, where dms_next_member starts. */
dms_struct_member dms_first_member(const dms_operator_row *row);

/* Sets *member to the struct's next member (after dms_first_member: the first one), and returns 1. After the last
 * member it returns 0 and leaves *member alone. */
int dms_next_member(dms_struct_member *member);

/* Returns the size in bytes of the struct up to the end of its last member. */
size_t dms_struct_bytes(const dms_operator_row *row);

#ifdef __cplusplus
}
#endif
