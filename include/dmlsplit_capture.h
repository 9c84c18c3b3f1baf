/* dmlsplit_capture.h - writes the operator that a program is about to create, for `dmlsplit check` to explain
 *
 *     #include <DirectML.h>                            or nothing: dmlsplit_directml.h declares the structs then
 *     #include "dmlsplit_capture.h"
 *     ...
 *     DML_OPERATOR_DESC desc = {DML_OPERATOR_SPLIT, &split};
 *     dmlsplit_write_json(stdout, &desc);
 *     HRESULT result = device->CreateOperator(&desc, IID_PPV_ARGS(&op));
 *
 * and then `program | dmlsplit check -`, or `dmlsplit check FILE.jsonl` where the stream is a file.
 *
 * This header is all of it: there is nothing to link. After Microsoft's DirectML.h it can be copied alone; without that it needs
 * dmlsplit_directml.h and dmlsplit.h beside it. C99 and C++11.
 *
 * Ownership  The stream and everything that the descriptor points to stay the caller's. Nothing is kept, changed, allocated or closed.
 * Threads    There is no state but the stream's. A line takes many writes: calls that share a stream must not run at the same time.
 * NULL       A null pointer anywhere in the descriptor is written as null; a NULL stream is an error.
 */
#ifndef DMLSPLIT_CAPTURE_H
#define DMLSPLIT_CAPTURE_H

#include <stdint.h>
#include <stdio.h>

/* The condition of dmlsplit_directml.h: see there. */
#if !defined(DMLSPLIT_HAVE_DIRECTML_H) && !(defined(DIRECTML_H) && defined(DML_DECLARE_INTERFACE))
#include "dmlsplit_directml.h"
#endif

/* A count above its limit is taken for garbage: the array is not read, and stands as [] in the line. */
#define DMLSPLIT_CAPTURE_MAX_DIMENSIONS 64u     /* DimensionCount, of Sizes and Strides */
#define DMLSPLIT_CAPTURE_MAX_TENSORS 1048576u   /* OutputCount of a Split, InputCount of a Join */

#if defined(__GNUC__) || defined(__clang__)
#define DMLSPLIT_CAPTURE_INLINE static inline __attribute__((unused))
#else
#define DMLSPLIT_CAPTURE_INLINE static inline
#endif

typedef struct dmlsplit_capture_line {
    FILE *stream;
    int failed;
} dmlsplit_capture_line;

DMLSPLIT_CAPTURE_INLINE void dmlsplit_capture_text(dmlsplit_capture_line *line, const char *text)
{
    if (!line->failed && fputs(text, line->stream) < 0)
        line->failed = 1;
}

/* Not by fprintf: the conversion of a 64-bit number differs among C libraries. */
DMLSPLIT_CAPTURE_INLINE void dmlsplit_capture_number(dmlsplit_capture_line *line, uint64_t number)
{
    char digits[21];
    char *start = digits + sizeof digits - 1;
    *start = '\0';
    do {
        *--start = (char)('0' + (int)(number % 10u));
        number /= 10u;
    } while (number != 0u);
    dmlsplit_capture_text(line, start);
}

/* An enumeration by its bytes: a program's mistake may be a value that the type does not hold in C++. */
DMLSPLIT_CAPTURE_INLINE uint32_t dmlsplit_capture_enum(const void *member)
{
    uint32_t value = 0;
    unsigned char *to = (unsigned char *)&value;
    const unsigned char *from = (const unsigned char *)member;
    for (size_t i = 0; i < sizeof value; i++)
        to[i] = from[i];
    return value;
}

/* The name without its prefix, as DxDispatch writes it; a value without a name as a number. */
DMLSPLIT_CAPTURE_INLINE void dmlsplit_capture_name(dmlsplit_capture_line *line, uint32_t value, const char *const *names, uint32_t count)
{
    if (value >= count) {
        dmlsplit_capture_number(line, value);
        return;
    }
    dmlsplit_capture_text(line, "\"");
    dmlsplit_capture_text(line, names[value]);
    dmlsplit_capture_text(line, "\"");
}

DMLSPLIT_CAPTURE_INLINE void dmlsplit_capture_numbers(dmlsplit_capture_line *line, const uint32_t *numbers, uint32_t count)
{
    if (numbers == NULL) {
        dmlsplit_capture_text(line, "null");
        return;
    }
    dmlsplit_capture_text(line, "[");
    for (uint32_t i = 0; count <= DMLSPLIT_CAPTURE_MAX_DIMENSIONS && i < count; i++) {
        if (i > 0)
            dmlsplit_capture_text(line, ", ");
        dmlsplit_capture_number(line, numbers[i]);
    }
    dmlsplit_capture_text(line, "]");
}

DMLSPLIT_CAPTURE_INLINE void dmlsplit_capture_buffer_tensor(dmlsplit_capture_line *line, const DML_BUFFER_TENSOR_DESC *desc)
{
    static const char *const data_types[] = {"UNKNOWN", "FLOAT32", "FLOAT16", "UINT32", "UINT16", "UINT8", "INT32",
                                             "INT16",   "INT8",    "FLOAT64", "UINT64", "INT64",  "UINT4", "INT4"};
    static const char *const flags[] = {"NONE", "OWNED_BY_DML"};
    dmlsplit_capture_text(line, "{\"DataType\": ");
    dmlsplit_capture_name(line, dmlsplit_capture_enum(&desc->DataType), data_types, 14u);
    dmlsplit_capture_text(line, ", \"Flags\": ");
    dmlsplit_capture_name(line, dmlsplit_capture_enum(&desc->Flags), flags, 2u);
    dmlsplit_capture_text(line, ", \"DimensionCount\": ");
    dmlsplit_capture_number(line, desc->DimensionCount);
    dmlsplit_capture_text(line, ", \"Sizes\": ");
    dmlsplit_capture_numbers(line, desc->Sizes, desc->DimensionCount);
    dmlsplit_capture_text(line, ", \"Strides\": ");
    dmlsplit_capture_numbers(line, desc->Strides, desc->DimensionCount);
    dmlsplit_capture_text(line, ", \"TotalTensorSizeInBytes\": ");
    dmlsplit_capture_number(line, desc->TotalTensorSizeInBytes);
    dmlsplit_capture_text(line, ", \"GuaranteedBaseOffsetAlignment\": ");
    dmlsplit_capture_number(line, desc->GuaranteedBaseOffsetAlignment);
    dmlsplit_capture_text(line, "}");
}

DMLSPLIT_CAPTURE_INLINE void dmlsplit_capture_tensor(dmlsplit_capture_line *line, const DML_TENSOR_DESC *tensor)
{
    static const char *const types[] = {"INVALID", "BUFFER"};
    if (tensor == NULL) {
        dmlsplit_capture_text(line, "null");
        return;
    }
    dmlsplit_capture_text(line, "{\"Type\": ");
    dmlsplit_capture_name(line, dmlsplit_capture_enum(&tensor->Type), types, 2u);
    dmlsplit_capture_text(line, ", \"Desc\": ");
    if (tensor->Desc == NULL)
        dmlsplit_capture_text(line, "null");
    else
        dmlsplit_capture_buffer_tensor(line, (const DML_BUFFER_TENSOR_DESC *)tensor->Desc);
    dmlsplit_capture_text(line, "}");
}

DMLSPLIT_CAPTURE_INLINE void dmlsplit_capture_tensors(dmlsplit_capture_line *line, const DML_TENSOR_DESC *tensors, uint32_t count)
{
    if (tensors == NULL) {
        dmlsplit_capture_text(line, "null");
        return;
    }
    dmlsplit_capture_text(line, "[");
    for (uint32_t i = 0; count <= DMLSPLIT_CAPTURE_MAX_TENSORS && i < count; i++) {
        if (i > 0)
            dmlsplit_capture_text(line, ", ");
        dmlsplit_capture_tensor(line, &tensors[i]);
    }
    dmlsplit_capture_text(line, "]");
}

DMLSPLIT_CAPTURE_INLINE void dmlsplit_capture_split(dmlsplit_capture_line *line, const DML_SPLIT_OPERATOR_DESC *desc)
{
    dmlsplit_capture_text(line, "{\"InputTensor\": ");
    dmlsplit_capture_tensor(line, desc->InputTensor);
    dmlsplit_capture_text(line, ", \"OutputCount\": ");
    dmlsplit_capture_number(line, desc->OutputCount);
    dmlsplit_capture_text(line, ", \"OutputTensors\": ");
    dmlsplit_capture_tensors(line, desc->OutputTensors, desc->OutputCount);
    dmlsplit_capture_text(line, ", \"Axis\": ");
    dmlsplit_capture_number(line, desc->Axis);
    dmlsplit_capture_text(line, "}");
}

DMLSPLIT_CAPTURE_INLINE void dmlsplit_capture_join(dmlsplit_capture_line *line, const DML_JOIN_OPERATOR_DESC *desc)
{
    dmlsplit_capture_text(line, "{\"InputCount\": ");
    dmlsplit_capture_number(line, desc->InputCount);
    dmlsplit_capture_text(line, ", \"InputTensors\": ");
    dmlsplit_capture_tensors(line, desc->InputTensors, desc->InputCount);
    dmlsplit_capture_text(line, ", \"OutputTensor\": ");
    dmlsplit_capture_tensor(line, desc->OutputTensor);
    dmlsplit_capture_text(line, ", \"Axis\": ");
    dmlsplit_capture_number(line, desc->Axis);
    dmlsplit_capture_text(line, "}");
}

/* Write one operator as a line of JSON and flush it: the call that follows may end the process. 64-bit members are exact.
 *
 * Read are the members of the structs and, of each array that is not null, as many entries as its count says, or none where the count is
 * above its limit; the pointers must be good for that. Whatever its Type, a tensor's Desc is read as a DML_BUFFER_TENSOR_DESC: there is no
 * other kind. Of an operator that is neither a Split nor a Join nothing but the Type is read: it is written as {"Type": number}, which
 * `dmlsplit check` counts as not judged. A NULL desc is the line null, and a NULL desc->Desc leaves "Desc": null; both are reported as
 * malformed.
 *
 * Returns 0; -1 for a NULL stream, to which nothing is written; -2 where the stream took no more, perhaps after a part of the line. */
DMLSPLIT_CAPTURE_INLINE int dmlsplit_write_json(FILE *stream, const DML_OPERATOR_DESC *desc)
{
    dmlsplit_capture_line capture = {stream, 0};
    dmlsplit_capture_line *line = &capture;
    if (stream == NULL)
        return -1;
    if (desc == NULL) {
        dmlsplit_capture_text(line, "null\n");
    } else {
        const uint32_t type = dmlsplit_capture_enum(&desc->Type);
        const int is_split = type == (uint32_t)DML_OPERATOR_SPLIT;
        const int is_join = type == (uint32_t)DML_OPERATOR_JOIN;
        dmlsplit_capture_text(line, "{\"Type\": ");
        if (!is_split && !is_join) {
            dmlsplit_capture_number(line, type);
        } else {
            dmlsplit_capture_text(line, is_split ? "\"DML_OPERATOR_SPLIT\", \"Desc\": " : "\"DML_OPERATOR_JOIN\", \"Desc\": ");
            if (desc->Desc == NULL)
                dmlsplit_capture_text(line, "null");
            else if (is_split)
                dmlsplit_capture_split(line, (const DML_SPLIT_OPERATOR_DESC *)desc->Desc);
            else
                dmlsplit_capture_join(line, (const DML_JOIN_OPERATOR_DESC *)desc->Desc);
        }
        dmlsplit_capture_text(line, "}\n");
    }
    if (fflush(stream) != 0)
        line->failed = 1;
    return line->failed ? -2 : 0;
}

#undef DMLSPLIT_CAPTURE_INLINE

#endif
