/* copy.c - see copy.h */
#include "copy.h"

#include "dms_members.h"
#include "platform.h"

#include <stdlib.h>
#include <string.h>

/* What a copy may take: much more than any descriptor that is meant. */
#define MOST_BYTES ((size_t)256 << 20)

/* Pages that this thread found to be readable. */
enum { PAGE = 4096, PAGES = 16 };       /* at most the size of a page, on any system */

static LAYER_THREAD struct {
    uintptr_t pages[PAGES];
    uint32_t count;
} readable;

void layer_forget(void)
{
    readable.count = 0;
}

static bool is_readable(uintptr_t page)
{
    for (uint32_t i = 0; i < readable.count; i++)
        if (readable.pages[i] == page)
            return true;
    if (page == 0 || !layer_is_readable((const void *)(page * PAGE)))
        return false;
    readable.pages[readable.count < PAGES ? readable.count++ : page % PAGES] = page;
    return true;
}

bool layer_read(const void *from, void *to, size_t bytes)
{
    const uintptr_t first = (uintptr_t)from / PAGE;
    const uintptr_t last = bytes == 0 ? first : ((uintptr_t)from + bytes - 1) / PAGE;
    if (last < first)
        return false;
    for (uintptr_t page = first; page <= last; page++)
        if (!is_readable(page))
            return false;
    memcpy(to, from, bytes);
    return true;
}

typedef struct layer_block {
    struct layer_block *next;
    uint64_t bytes[];
} layer_block;

static void *new_block(layer_block **blocks, size_t bytes)
{
    layer_block *const block = malloc(sizeof *block + bytes);
    if (block == NULL)
        return NULL;
    block->next = *blocks;
    *blocks = block;
    return block->bytes;
}

static void free_blocks(layer_block *block)
{
    while (block != NULL) {
        layer_block *const next = block->next;
        free(block);
        block = next;
    }
}

/* A copy of an array; NULL where it is not there. */
static void *copied(layer_copy *copy, const void *from, size_t count, size_t bytes)
{
    void *to = NULL;
    if (from == NULL)
        return NULL;
    if (count <= copy->left / bytes)
        to = new_block(&copy->blocks, count * bytes + 1);   /* an empty array is not NULL */
    if (to == NULL || (count > 0 && !layer_read(from, to, count * bytes))) {
        copy->whole = false;
        return NULL;
    }
    copy->left -= count * bytes;
    return to;
}

/* An array of numbers or structs: an empty one where its count is too large to be meant. */
static void *copied_array(layer_copy *copy, const void *from, uint32_t *count, size_t bytes, uint32_t most)
{
    if (*count > most) {
        copy->whole = false;
        *count = 0;
    }
    return copied(copy, from, *count, bytes);
}

static void copy_tensors(layer_copy *copy, DML_TENSOR_DESC *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        DML_BUFFER_TENSOR_DESC *const desc = copied(copy, tensors[i].Desc, 1, sizeof *desc);
        tensors[i].Desc = desc;
        if (desc == NULL)
            continue;
        uint32_t sizes = desc->DimensionCount, strides = sizes;
        desc->Sizes = copied_array(copy, desc->Sizes, &sizes, sizeof *desc->Sizes, DMS_MOST_ENTRIES);
        desc->Strides = copied_array(copy, desc->Strides, &strides, sizeof *desc->Strides, DMS_MOST_ENTRIES);
    }
}

static void copy_operators(layer_copy *copy, DML_OPERATOR_DESC *descs, uint32_t count, uint32_t depth);

/* What a member points to. */
static void *copied_member(layer_copy *copy, char kind, const void *from, uint32_t count, uint32_t depth)
{
    uint32_t one = 1;
    uint32_t *const entries = strchr("TOS", kind) != NULL ? &one : &count;
    void *to;
    if (kind == 'T' || kind == 'R') {
        to = copied_array(copy, from, entries, sizeof(DML_TENSOR_DESC), DMS_MOST_STRUCTS);
        if (to != NULL)
            copy_tensors(copy, to, *entries);
    } else if (kind == 'O' || kind == 'P') {
        to = copied_array(copy, from, entries, sizeof(DML_OPERATOR_DESC), DMS_MOST_STRUCTS);
        if (to != NULL)
            copy_operators(copy, to, *entries, depth + 1);
    } else if (kind == 'S') {
        to = copied(copy, from, 1, sizeof(DML_SCALE_BIAS));
    } else {
        to = copied_array(copy, from, entries, sizeof(uint32_t), DMS_MOST_ENTRIES);
    }
    return to;
}

static void copy_operators(layer_copy *copy, DML_OPERATOR_DESC *descs, uint32_t count, uint32_t depth)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t type, entries = 0;
        memcpy(&type, &descs[i].Type, sizeof type);
        const dms_operator_row *const row = depth > DMS_MOST_FUSED ? NULL : dms_find_operator(type);
        unsigned char *const desc = row == NULL ? NULL : copied(copy, descs[i].Desc, 1, dms_struct_bytes(row));
        descs[i].Desc = desc;
        if (desc == NULL)
            continue;
        dms_struct_member member = dms_first_member(row);
        while (dms_next_member(&member)) {
            void *to;
            if (member.kind == 'C')
                memcpy(&entries, desc + member.offset, sizeof entries);
            if (!member.is_pointer)
                continue;
            memcpy(&to, desc + member.offset, sizeof to);
            to = copied_member(copy, member.kind, to, entries, depth);
            memcpy(desc + member.offset, &to, sizeof to);
        }
    }
}

layer_copy *layer_copy_operator(const DML_OPERATOR_DESC *desc)
{
    layer_copy *const copy = desc == NULL ? NULL : calloc(1, sizeof *copy);
    if (copy == NULL)
        return NULL;
    copy->whole = true;
    copy->left = MOST_BYTES;
    if (layer_read(desc, &copy->desc, sizeof *desc))
        copy_operators(copy, &copy->desc, 1, 0);
    else
        copy->whole = false;
    return copy;
}

void layer_free_copy(layer_copy *copy)
{
    if (copy != NULL)
        free_blocks(copy->blocks);
    free(copy);
}

/* An array of nodes or of edges, each with the struct that it points to, of so many bytes by its Type. Both have a Type and a Desc. */
static DML_GRAPH_NODE_DESC *copied_parts(layer_copy *copy, const void *from, uint32_t *count, size_t (*bytes_of)(uint32_t type))
{
    DML_GRAPH_NODE_DESC *const parts = copied_array(copy, from, count, sizeof *parts, DMS_MOST_STRUCTS);
    for (uint32_t i = 0; parts != NULL && i < *count; i++) {
        uint32_t type;
        memcpy(&type, &parts[i].Type, sizeof type);
        const size_t bytes = bytes_of(type);
        if (bytes > 0)
            parts[i].Desc = copied(copy, parts[i].Desc, 1, bytes);
    }
    return parts;
}

static size_t node_bytes(uint32_t type)
{
    return type == (uint32_t)DML_GRAPH_NODE_TYPE_OPERATOR ? sizeof(DML_OPERATOR_GRAPH_NODE_DESC) : 0;
}

static size_t edge_bytes(uint32_t type)
{
    return type == (uint32_t)DML_GRAPH_EDGE_TYPE_INTERMEDIATE ? sizeof(DML_INTERMEDIATE_GRAPH_EDGE_DESC) : sizeof(DML_INPUT_GRAPH_EDGE_DESC);
}

layer_graph *layer_copy_graph(const DML_GRAPH_DESC *desc)
{
    layer_copy copy = {.whole = true, .left = MOST_BYTES};
    layer_graph *const graph = desc == NULL ? NULL : calloc(1, sizeof *graph);
    if (graph == NULL)
        return NULL;
    if (layer_read(desc, &graph->desc, sizeof *desc)) {
        DML_GRAPH_DESC *const of = &graph->desc;
        of->Nodes = copied_parts(&copy, of->Nodes, &of->NodeCount, node_bytes);
        of->InputEdges = (const void *)copied_parts(&copy, of->InputEdges, &of->InputEdgeCount, edge_bytes);
        of->OutputEdges = (const void *)copied_parts(&copy, of->OutputEdges, &of->OutputEdgeCount, edge_bytes);
        of->IntermediateEdges = (const void *)copied_parts(&copy, of->IntermediateEdges, &of->IntermediateEdgeCount, edge_bytes);
        copy.whole = copy.whole && of->InputCount <= DMS_MOST_STRUCTS && of->OutputCount <= DMS_MOST_STRUCTS;
    } else {
        copy.whole = false;
    }
    graph->whole = copy.whole;
    graph->blocks = copy.blocks;
    return graph;
}

void layer_free_graph(layer_graph *graph)
{
    if (graph != NULL)
        free_blocks(graph->blocks);
    free(graph);
}
