/* dms_capture.c - operators and graphs as JSON, in the format of DxDispatch's models
 *
 * Valid C99 and C++11: C++ programs that record calls also compile it.
 */
#include "dmlsplit_capture.h"

#include "dms_members.h"

#include <string.h>

typedef struct text_line {
    dmlsplit_capture_sink sink;
    void *to;
    int failed;
    uint32_t fused_left; /* of DMS_MOST_FUSED_IN_ALL: pointers that lead back to their operator would give count^depth operators */
} text_line;

/* Writes the first `length` characters of a text. */
static void write_part(text_line *line, const char *text, size_t length)
{
    if (!line->failed && length > 0 && line->sink(text, length, line->to) != length)
        line->failed = 1;
}

static void write_text(text_line *line, const char *text)
{
    write_part(line, text, strlen(text));
}

/* Writes a number. It does not use fprintf, because formats of 64-bit numbers differ between C libraries. */
static void write_number(text_line *line, uint64_t number)
{
    char digits[21];
    char *start = digits + sizeof digits - 1;
    *start = '\0';
    do {
        *--start = (char)('0' + (int)(number % 10u));
        number /= 10u;
    } while (number != 0u);
    write_text(line, start);
}

/* Returns the value of an enum, read as bytes: a faulty program may have stored a value outside the enum's range in
 * C++. */
static uint32_t read_enum(const void *member)
{
    uint32_t value;
    memcpy(&value, member, sizeof value);
    return value;
}

static void write_signed(text_line *line, int64_t number)
{
    if (number < 0)
        write_text(line, "-");
    write_number(line, number < 0 ? 0u - (uint64_t)number : (uint64_t)number);
}

/* Writes all digits of a double, with a point in every locale. The numbers that JSON does not have are "nan", "inf"
 * and "-inf". */
static void write_float(text_line *line, double value)
{
    char text[40];
    int whole = 1;
    if (value != value || value - value != 0.0) {
        write_text(line, value != value ? "\"nan\"" : value > 0.0 ? "\"inf\"" : "\"-inf\"");
        return;
    }
    if (snprintf(text, sizeof text, "%.17g", value) < 0) {
        line->failed = 1;
        return;
    }
    for (char *at = text; *at != '\0'; at++) {
        if (*at == ',')
            *at = '.';
        if (*at == '.' || *at == 'e')
            whole = 0;
    }
    write_text(line, text);
    if (whole)
        write_text(line, ".0");
}

/* Writes an enumerator as DxDispatch does: quoted and without its prefix. Its name is word number `value` of a text;
 * a value without a name is written as a number. */
static void write_name(text_line *line, uint32_t value, const char *words)
{
    uint32_t i = 0;
    while (i < value && *words != '\0')
        if (*words++ == ' ')
            i++;
    if (*words == '\0') {
        write_number(line, value);
        return;
    }
    write_text(line, "\"");
    write_part(line, words, strcspn(words, " "));
    write_text(line, "\"");
}

static const char *data_types(void)
{
    return "UNKNOWN FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 FLOAT64 UINT64 INT64 UINT4 INT4";
}

static void write_numbers(text_line *line, const uint32_t *numbers, uint32_t count)
{
    if (numbers == NULL) {
        write_text(line, "null");
        return;
    }
    write_text(line, "[");
    for (uint32_t i = 0; count <= DMS_MOST_ENTRIES && i < count; i++) {
        if (i > 0)
            write_text(line, ", ");
        write_number(line, numbers[i]);
    }
    write_text(line, "]");
}

static void write_buffer_tensor(text_line *line, const DML_BUFFER_TENSOR_DESC *desc)
{
    write_text(line, "{\"DataType\": ");
    write_name(line, read_enum(&desc->DataType), data_types());
    write_text(line, ", \"Flags\": ");
    write_name(line, read_enum(&desc->Flags), "NONE OWNED_BY_DML");
    write_text(line, ", \"DimensionCount\": ");
    write_number(line, desc->DimensionCount);
    write_text(line, ", \"Sizes\": ");
    write_numbers(line, desc->Sizes, desc->DimensionCount);
    write_text(line, ", \"Strides\": ");
    write_numbers(line, desc->Strides, desc->DimensionCount);
    write_text(line, ", \"TotalTensorSizeInBytes\": ");
    write_number(line, desc->TotalTensorSizeInBytes);
    write_text(line, ", \"GuaranteedBaseOffsetAlignment\": ");
    write_number(line, desc->GuaranteedBaseOffsetAlignment);
    write_text(line, "}");
}

static void write_tensor(text_line *line, const DML_TENSOR_DESC *tensor)
{
    if (tensor == NULL) {
        write_text(line, "null");
        return;
    }
    write_text(line, "{\"Type\": ");
    write_name(line, read_enum(&tensor->Type), "INVALID BUFFER");
    write_text(line, ", \"Desc\": ");
    if (tensor->Desc == NULL)
        write_text(line, "null");
    else
        write_buffer_tensor(line, (const DML_BUFFER_TENSOR_DESC *)tensor->Desc);
    write_text(line, "}");
}

/* True if one more operator, or tensor in an array of one, may be written; `depth` is the number of operators around it. */
static int is_one_left(text_line *line, uint32_t depth)
{
    if (depth > 0u && line->fused_left == 0u)
        return 0;
    line->fused_left -= depth > 0u ? 1u : 0u;
    return 1;
}

static void write_tensors(text_line *line, const DML_TENSOR_DESC *tensors, uint32_t count, uint32_t depth)
{
    if (tensors == NULL) {
        write_text(line, "null");
        return;
    }
    write_text(line, "[");
    for (uint32_t i = 0; count <= DMS_MOST_STRUCTS && i < count && is_one_left(line, depth); i++) {
        if (i > 0)
            write_text(line, ", ");
        write_tensor(line, &tensors[i]);
    }
    write_text(line, "]");
}

/* Writes a FLOAT16, given by its bits. */
static void write_half(text_line *line, uint32_t bits)
{
    const uint32_t mantissa = bits & 0x3ffu, exponent = bits >> 10 & 31u;
    double value = exponent == 0u ? mantissa : mantissa + 1024.0;
    if (exponent == 31u) {
        write_text(line, mantissa != 0u ? "\"nan\"" : bits >> 15 != 0u ? "\"-inf\"" : "\"inf\"");
        return;
    }
    for (uint32_t i = exponent == 0u ? 1u : exponent; i < 25u; i++)
        value *= 0.5;
    for (uint32_t i = 25u; i < exponent; i++)
        value *= 2.0;
    write_float(line, bits >> 15 != 0u ? -value : value);
}

/* Writes a DML_SCALAR_UNION: the member for the type, or all bytes if no member has the type. */
static void write_scalar(text_line *line, const unsigned char *bytes, uint32_t data_type)
{
    union {
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    } value;
    memcpy(&value, bytes, sizeof value);
    switch (data_type) {
    case 1u: write_float(line, (double)value.f32); break;
    case 2u: write_half(line, value.u16); break;
    case 3u: write_number(line, value.u32); break;
    case 4u: write_number(line, value.u16); break;
    case 5u: write_number(line, value.u8); break;
    case 6u: write_signed(line, value.i32); break;
    case 7u: write_signed(line, value.i16); break;
    case 8u: write_signed(line, value.i8); break;
    case 9u: write_float(line, value.f64); break;
    case 11u: write_signed(line, value.i64); break;
    default: write_number(line, value.u64); break;
    }
}

static void write_operator(text_line *line, const DML_OPERATOR_DESC *desc, uint32_t depth);

/* Writes the target of a pointer. */
static void write_pointed(text_line *line, char kind, const void *to, uint32_t count, uint32_t depth)
{
    const uint32_t most = kind == 'P' ? DMS_MOST_STRUCTS : DMS_MOST_ENTRIES;
    if (kind == 'T') {
        write_tensor(line, (const DML_TENSOR_DESC *)to);
    } else if (kind == 'R') {
        write_tensors(line, (const DML_TENSOR_DESC *)to, count, depth);
    } else if (kind == 'u') {
        write_numbers(line, (const uint32_t *)to, count);
    } else if (to == NULL) {
        write_text(line, "null");
    } else if (kind == 'O' && !is_one_left(line, depth + 1u)) {
        write_text(line, "null");
    } else if (kind == 'O') {
        write_operator(line, (const DML_OPERATOR_DESC *)to, depth + 1u);
    } else if (kind == 'S') {
        write_text(line, "{\"Scale\": ");
        write_float(line, (double)((const float *)to)[0]);
        write_text(line, ", \"Bias\": ");
        write_float(line, (double)((const float *)to)[1]);
        write_text(line, "}");
    } else {
        write_text(line, "[");
        for (uint32_t i = 0; count <= most && i < count && (kind != 'P' || is_one_left(line, depth + 1u)); i++) {
            if (i > 0)
                write_text(line, ", ");
            if (kind == 'P')
                write_operator(line, (const DML_OPERATOR_DESC *)to + i, depth + 1u);
            else if (kind == 'i')
                write_signed(line, ((const int32_t *)to)[i]);
            else
                write_float(line, (double)((const float *)to)[i]);
        }
        write_text(line, "]");
    }
}

/* Writes one or two numbers that the struct itself contains. */
static void write_value(text_line *line, char kind, const unsigned char *at)
{
    uint32_t numbers[2] = {0u, 0u};
    int32_t integer;
    float real;
    memcpy(numbers, at, kind == 'Z' ? sizeof numbers : sizeof numbers[0]);
    memcpy(&integer, numbers, sizeof integer);
    memcpy(&real, numbers, sizeof real);
    if (kind == 'F') {
        write_float(line, (double)real);
    } else if (kind == 'I') {
        write_signed(line, integer);
    } else if (kind == 'Z') {
        write_text(line, "{\"Width\": ");
        write_number(line, numbers[0]);
        write_text(line, ", \"Height\": ");
        write_number(line, numbers[1]);
        write_text(line, "}");
    } else {
        write_number(line, numbers[0]);
    }
}

/* Writes the members of a struct, by the table; tensors of a fused operator are omitted if they are null. */
static void write_members(text_line *line, const dms_operator_row *row, const void *desc, uint32_t depth)
{
    const char *separator = "\"";
    dms_struct_member member = dms_first_member(row);
    uint32_t count = 0, data_type = 0;
    write_text(line, "{");
    while (dms_next_member(&member)) {
        const unsigned char *const at = (const unsigned char *)desc + member.offset;
        const void *to = NULL;
        if (member.is_pointer)
            memcpy(&to, at, sizeof to);
        if (member.kind == 'T' && to == NULL && depth > 0u)
            continue;
        write_text(line, separator);
        separator = ", \"";
        write_part(line, member.name, member.length);
        write_text(line, "\": ");
        if (member.is_pointer) {
            write_pointed(line, member.kind, to, count, depth);
        } else if (member.kind == 'D') {
            data_type = read_enum(at);
            write_name(line, data_type, data_types());
        } else if (member.kind == 'E') {
            write_name(line, read_enum(at), dms_enum_names(member.which));
        } else if (member.kind == 'X') {
            write_scalar(line, at, data_type);
        } else {
            write_value(line, member.kind, at);
            if (member.kind == 'C')
                count = read_enum(at);
        }
    }
    write_text(line, "}");
}

static void write_operator(text_line *line, const DML_OPERATOR_DESC *desc, uint32_t depth)
{
    const uint32_t type = read_enum(&desc->Type);
    const dms_operator_row *const row = dms_find_operator(type);
    if (depth > DMS_MOST_FUSED) {
        write_text(line, "null");
        return;
    }
    write_text(line, "{\"Type\": ");
    if (row == NULL) {
        write_number(line, type);
        write_text(line, "}");
        return;
    }
    write_text(line, "\"DML_OPERATOR_");
    write_text(line, row->name);
    write_text(line, "\", \"Desc\": ");
    if (desc->Desc == NULL)
        write_text(line, "null");
    else
        write_members(line, row, desc->Desc, depth);
    write_text(line, "}");
}

/* Writes a node; only its Type if it is not an operator, or not a known one. */
static void write_node(text_line *line, const DML_GRAPH_NODE_DESC *node, const DML_OPERATOR_DESC *desc)
{
    const int is_operator = read_enum(&node->Type) == (uint32_t)DML_GRAPH_NODE_TYPE_OPERATOR;
    const uint32_t type = !is_operator || desc == NULL ? 0u : read_enum(&desc->Type);
    line->fused_left = DMS_MOST_FUSED_IN_ALL;
    if (dms_find_operator(type) != NULL) {
        write_operator(line, desc, 0u);
        return;
    }
    write_text(line, "{\"Type\": ");
    write_number(line, type);
    write_text(line, ", \"Desc\": null}");
}

static void write_index(text_line *line, const char *name, uint32_t index)
{
    write_text(line, name);
    write_number(line, index);
}

/* Writes an edge; null, which a reader reports as malformed, if its Type does not match its array or its Desc is
 * NULL. */
static void write_edge(text_line *line, const DML_GRAPH_EDGE_DESC *edge, uint32_t type)
{
    if (edge->Desc == NULL || read_enum(&edge->Type) != type) {
        write_text(line, "null");
        return;
    }
    if (type == (uint32_t)DML_GRAPH_EDGE_TYPE_INPUT) {
        const DML_INPUT_GRAPH_EDGE_DESC *desc = (const DML_INPUT_GRAPH_EDGE_DESC *)edge->Desc;
        write_index(line, "{\"GraphInputIndex\": ", desc->GraphInputIndex);
        write_index(line, ", \"ToNodeIndex\": ", desc->ToNodeIndex);
        write_index(line, ", \"ToNodeInputIndex\": ", desc->ToNodeInputIndex);
    } else if (type == (uint32_t)DML_GRAPH_EDGE_TYPE_OUTPUT) {
        const DML_OUTPUT_GRAPH_EDGE_DESC *desc = (const DML_OUTPUT_GRAPH_EDGE_DESC *)edge->Desc;
        write_index(line, "{\"FromNodeIndex\": ", desc->FromNodeIndex);
        write_index(line, ", \"FromNodeOutputIndex\": ", desc->FromNodeOutputIndex);
        write_index(line, ", \"GraphOutputIndex\": ", desc->GraphOutputIndex);
    } else {
        const DML_INTERMEDIATE_GRAPH_EDGE_DESC *desc = (const DML_INTERMEDIATE_GRAPH_EDGE_DESC *)edge->Desc;
        write_index(line, "{\"FromNodeIndex\": ", desc->FromNodeIndex);
        write_index(line, ", \"FromNodeOutputIndex\": ", desc->FromNodeOutputIndex);
        write_index(line, ", \"ToNodeIndex\": ", desc->ToNodeIndex);
        write_index(line, ", \"ToNodeInputIndex\": ", desc->ToNodeInputIndex);
    }
    write_text(line, "}");
}

/* Begins an array of a graph, after its name. Returns 0, and writes null, if the array is NULL although its count is
 * not 0. */
static int open_array(text_line *line, const char *name, const void *entries, uint32_t count)
{
    const int is_missing = entries == NULL && count > 0u;
    write_text(line, name);
    write_text(line, is_missing ? "null" : "[");
    return !is_missing;
}

static void write_nodes(text_line *line, const DML_GRAPH_DESC *graph, const DML_OPERATOR_DESC *const *descs)
{
    if (!open_array(line, ", \"Nodes\": ", graph->Nodes, graph->NodeCount))
        return;
    for (uint32_t i = 0; i < graph->NodeCount; i++) {
        if (i > 0)
            write_text(line, ", ");
        write_node(line, &graph->Nodes[i], descs == NULL ? NULL : descs[i]);
    }
    write_text(line, "]");
}

static void write_edges(text_line *line, const char *name, const DML_GRAPH_EDGE_DESC *edges, uint32_t count, uint32_t type)
{
    if (!open_array(line, name, edges, count))
        return;
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            write_text(line, ", ");
        write_edge(line, &edges[i], type);
    }
    write_text(line, "]");
}

/* Writes the inputs or outputs of a graph: the tensors that their edges connect. */
static void write_ends(text_line *line, const char *name, uint32_t count)
{
    write_text(line, name);
    for (uint32_t i = 0; i < count; i++)
        write_text(line, i > 0 ? ", null" : "null");
}

int dmlsplit_capture_operator(const DML_OPERATOR_DESC *desc, dmlsplit_capture_sink sink, void *to)
{
    text_line line = {sink, to, 0, DMS_MOST_FUSED_IN_ALL};
    if (sink == NULL)
        return -1;
    if (desc == NULL)
        write_text(&line, "null");
    else
        write_operator(&line, desc, 0u);
    return line.failed ? -2 : 0;
}

static void write_graph(text_line *line, const DML_GRAPH_DESC *graph, const DML_OPERATOR_DESC *const *descs)
{
    write_ends(line, "{\"Type\": \"DML_GRAPH\", \"Desc\": {\"Inputs\": [", graph->InputCount);
    write_ends(line, "], \"Outputs\": [", graph->OutputCount);
    write_text(line, "]");
    write_nodes(line, graph, descs);
    write_edges(line, ", \"InputEdges\": ", graph->InputEdges, graph->InputEdgeCount, (uint32_t)DML_GRAPH_EDGE_TYPE_INPUT);
    write_edges(line, ", \"OutputEdges\": ", graph->OutputEdges, graph->OutputEdgeCount, (uint32_t)DML_GRAPH_EDGE_TYPE_OUTPUT);
    write_edges(line, ", \"IntermediateEdges\": ", graph->IntermediateEdges, graph->IntermediateEdgeCount,
                (uint32_t)DML_GRAPH_EDGE_TYPE_INTERMEDIATE);
    write_text(line, "}}");
}

int dmlsplit_capture_graph(const DML_GRAPH_DESC *graph, const DML_OPERATOR_DESC *const *descs, dmlsplit_capture_sink sink, void *to)
{
    const uint32_t most = DMS_MOST_STRUCTS;
    text_line line = {sink, to, 0, DMS_MOST_FUSED_IN_ALL};
    if (sink == NULL)
        return -1;
    if (graph == NULL)
        write_text(&line, "null");
    else if (graph->InputCount > most || graph->OutputCount > most || graph->NodeCount > most || graph->InputEdgeCount > most ||
             graph->OutputEdgeCount > most || graph->IntermediateEdgeCount > most)
        write_text(&line, "{\"Type\": \"DML_GRAPH\", \"Desc\": null}");
    else
        write_graph(&line, graph, descs);
    return line.failed ? -2 : 0;
}
