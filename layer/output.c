/* output.c - see output.h */
#include "output.h"

#include "dmlsplit_capture.h"
#include "platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_part(layer_text *text, const char *piece, size_t length)
{
    if (text->failed)
        return;
    if (length >= text->capacity - text->length) {
        const size_t capacity = 2 * (text->capacity + length) + 256;
        char *const bytes = realloc(text->bytes, capacity);
        if (bytes == NULL) {
            text->failed = true;
            return;
        }
        text->bytes = bytes;
        text->capacity = capacity;
    }
    memcpy(text->bytes + text->length, piece, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void layer_add(layer_text *text, const char *piece)
{
    add_part(text, piece, strlen(piece));
}

/* Appends a decimal number; printf's 64-bit formats differ between C libraries. */
void layer_add_number(layer_text *text, uint64_t number)
{
    char digits[21];
    char *start = digits + sizeof digits;
    do {
        *--start = (char)('0' + (int)(number % 10u));
        number /= 10u;
    } while (number != 0);
    add_part(text, start, (size_t)(digits + sizeof digits - start));
}

void layer_add_hresult(layer_text *text, HRESULT result)
{
    char digits[16];
    (void)snprintf(digits, sizeof digits, "0x%08lX", (unsigned long)(uint32_t)result);
    layer_add(text, digits);
}

/* Microseconds with three digits behind the point, whatever the locale. */
static void add_microseconds(layer_text *text, uint64_t nanoseconds)
{
    char digits[8];
    layer_add_number(text, nanoseconds / 1000u);
    (void)snprintf(digits, sizeof digits, ".%03u", (unsigned)(nanoseconds % 1000u));
    layer_add(text, digits);
}

/* A string of JSON. */
static void add_string(layer_text *text, const char *string)
{
    layer_add(text, "\"");
    for (; *string != '\0'; string++) {
        const unsigned char byte = (unsigned char)*string;
        char escaped[8];
        if (byte == '"' || byte == '\\' || byte < 0x20u)
            (void)snprintf(escaped, sizeof escaped, "\\u%04x", byte);
        else
            (void)snprintf(escaped, sizeof escaped, "%c", byte);
        layer_add(text, escaped);
    }
    layer_add(text, "\"");
}

static size_t take(const char *piece, size_t length, void *to)
{
    add_part(to, piece, length);
    return length;
}

void layer_add_operator(layer_text *text, const DML_OPERATOR_DESC *desc)
{
    (void)dmlsplit_capture_operator(desc, take, text);
}

void layer_add_graph(layer_text *text, const DML_GRAPH_DESC *graph, const DML_OPERATOR_DESC *const *descs)
{
    (void)dmlsplit_capture_graph(graph, descs, take, text);
}

/* ---- Where it goes ---- */

typedef void (*callback)(const char *text, size_t length);

static struct {
    bool read;
    layer_file *file;
    char *path;
    callback call;
    bool to_standard_error, to_debugger;
    uint32_t release;
} output;

static char *with_process(const char *path)
{
    layer_text text = {0};
    for (; *path != '\0'; path++) {
        if (path[0] == '%' && path[1] == 'p') {
            layer_add_number(&text, layer_process());
            path++;
        } else {
            add_part(&text, path, 1);
        }
    }
    return text.bytes;
}

/* A variable with a value that means nothing is named, once. */
static void complain(const char *variable, const char *value, const char *why)
{
    layer_text text = {0};
    const char *const pieces[] = {"dmlsplit: ", variable, "=", value, ": ", why, "\n"};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        layer_add(&text, pieces[i]);
    if (!text.failed)
        layer_to_standard_error(text.bytes, text.length);
    free(text.bytes);
}

static void read_variables(void)
{
    char *const path = layer_variable("DMLSPLIT_LAYER_FILE");
    char *const function = layer_variable("DMLSPLIT_LAYER_CALLBACK");
    char *const messages = layer_variable("DMLSPLIT_LAYER_MESSAGES");
    char *const release = layer_variable("DMLSPLIT_LAYER_DIRECTML");
    output.path = path == NULL ? NULL : with_process(path);
    if (output.path != NULL) {
        output.file = layer_open(output.path);
        if (output.file == NULL)
            complain("DMLSPLIT_LAYER_FILE", path, "the file cannot be written");
    }
    if (function != NULL) {
        void *const found = layer_function_of_program(function);
        memcpy(&output.call, &found, sizeof found);
        if (found == NULL)
            complain("DMLSPLIT_LAYER_CALLBACK", function, "the program exports no such function");
    }
    output.to_standard_error = messages == NULL || strstr(messages, "stderr") != NULL;
    output.to_debugger = messages == NULL || strstr(messages, "debug") != NULL;
    if (release != NULL) {
        output.release = dmlsplit_find_release(release);
        if (output.release == 0)
            complain("DMLSPLIT_LAYER_DIRECTML", release, "no release is known by this name");
    }
    free(path);
    free(function);
    free(messages);
    free(release);
}

static void prepare(void)
{
    layer_lock();
    if (!output.read)
        read_variables();
    output.read = true;
    layer_unlock();
}

bool layer_writes(void)
{
    prepare();
    return output.file != NULL || output.call != NULL;
}

uint32_t layer_release(void)
{
    prepare();
    return output.release;
}

/* Ends a line with a brace, and writes it at once. */
static void write_line(layer_text *line)
{
    layer_add(line, "}\n");
    if (line->failed)
        return;
    if (output.file != NULL)
        layer_append(output.file, line->bytes, line->length);
    if (output.call != NULL)
        output.call(line->bytes, line->length);
}

layer_call layer_begin(const char *name, uint64_t device)
{
    layer_call call = {.name = name, .number = layer_next_number()};
    layer_forget();
    if (layer_writes()) {
        layer_add(&call.line, "{\"Call\": \"");
        layer_add(&call.line, name);
        layer_add(&call.line, "\"");
        layer_key_number(&call, "Number", call.number);
        layer_key_number(&call, "Process", layer_process());
        layer_key_number(&call, "Thread", layer_thread());
        if (device != 0)
            layer_key_number(&call, "Device", device);
    }
    return call;
}

void layer_key(layer_call *call, const char *key)
{
    if (call->line.bytes == NULL)
        return;
    layer_add(&call->line, ", \"");
    layer_add(&call->line, key);
    layer_add(&call->line, "\": ");
}

void layer_key_number(layer_call *call, const char *key, uint64_t number)
{
    layer_key(call, key);
    if (call->line.bytes != NULL)
        layer_add_number(&call->line, number);
}

void layer_submit(layer_call *call)
{
    if (call->line.bytes != NULL)
        write_line(&call->line);
    free(call->line.bytes);
    call->line = (layer_text){0};
    call->start = layer_nanoseconds();
}

void layer_stop(layer_call *call)
{
    call->nanoseconds = layer_nanoseconds() - call->start;
}

void layer_returned(const layer_call *call, const HRESULT *result, HRESULT removed, const char *sentence)
{
    layer_text line = {0};
    if (!layer_writes())
        return;
    layer_add(&line, "{\"Return\": ");
    layer_add_number(&line, call->number);
    layer_add(&line, ", \"Process\": ");
    layer_add_number(&line, layer_process());
    if (result != NULL) {
        layer_add(&line, ", \"HRESULT\": \"");
        layer_add_hresult(&line, *result);
        layer_add(&line, "\"");
    }
    if (removed < 0) {
        layer_add(&line, ", \"DeviceRemovedReason\": \"");
        layer_add_hresult(&line, removed);
        layer_add(&line, "\"");
    }
    layer_add(&line, ", \"Microseconds\": ");
    add_microseconds(&line, call->nanoseconds);
    if (sentence != NULL) {
        layer_add(&line, ", \"Message\": ");
        add_string(&line, sentence);
    }
    write_line(&line);
    free(line.bytes);
}

/* ---- Sentences ---- */

void layer_say(const char *sentence)
{
    layer_text text = {0};
    prepare();
    layer_add(&text, "dmlsplit: ");
    layer_add(&text, sentence);
    layer_add(&text, "\n");
    if (!text.failed && output.to_standard_error)
        layer_to_standard_error(text.bytes, text.length);
    if (!text.failed && output.to_debugger)
        layer_to_debugger(text.bytes);
    if (!text.failed && output.call != NULL)
        output.call(text.bytes, text.length);
    free(text.bytes);
}

#define INVALID_ARGUMENT 0x80070057u

static const struct {
    uint32_t code;
    const char *name;
} hresults[] = {
    {0x80004001u, "E_NOTIMPL"},
    {0x80004002u, "E_NOINTERFACE"},
    {0x80004003u, "E_POINTER"},
    {0x80004005u, "E_FAIL"},
    {0x8007000Eu, "E_OUTOFMEMORY"},
    {INVALID_ARGUMENT, "E_INVALIDARG"},
    {0x887A0001u, "DXGI_ERROR_INVALID_CALL"},
    {0x887A0004u, "DXGI_ERROR_UNSUPPORTED"},
    {0x887A0005u, "DXGI_ERROR_DEVICE_REMOVED"},
    {0x887A0006u, "DXGI_ERROR_DEVICE_HUNG"},
    {0x887A0007u, "DXGI_ERROR_DEVICE_RESET"},
};

/* The verdict on a Split or a Join that is wholly there; false for anything else. */
static bool judged(const layer_copy *copy, uint32_t target, dmlsplit_verdict *verdict)
{
    verdict->struct_size = sizeof *verdict;
    if (copy == NULL || !copy->whole || copy->desc.Desc == NULL)
        return false;
    if (copy->desc.Type == DML_OPERATOR_SPLIT)
        return dmlsplit_validate_split(copy->desc.Desc, target, verdict) == DMLSPLIT_OK;
    return copy->desc.Type == DML_OPERATOR_JOIN && dmlsplit_validate_join(copy->desc.Desc, target, verdict) == DMLSPLIT_OK;
}

/* OutputTensors[1].Sizes[2]: summary (id) */
static void add_rule(layer_text *text, const dmlsplit_verdict *verdict)
{
    char path[160];
    const char *const summary = dmlsplit_rule_summary(verdict->rule);
    (void)dmlsplit_verdict_path(verdict, path, sizeof path);
    layer_add(text, ": ");
    layer_add(text, path);
    layer_add(text, path[0] == '\0' ? "" : ": ");
    layer_add(text, summary == NULL ? "" : summary);
    layer_add(text, " (");
    layer_add(text, verdict->rule);
    layer_add(text, ")");
}

static void add_where(layer_text *text, const layer_call *call)
{
    layer_add(text, " [call ");
    layer_add_number(text, call->number);
    layer_add(text, ", thread ");
    layer_add_number(text, layer_thread());
    layer_add(text, "]");
}

/* What reads the line of a graph. */
static void add_reader(layer_text *text)
{
    layer_add(text, output.path != NULL ? ": `dmlsplit check " : ": with DMLSPLIT_LAYER_FILE=FILE, `dmlsplit check ");
    layer_add(text, output.path != NULL ? output.path : "FILE");
    layer_add(text, "` says more");
}

char *layer_sentence(const layer_call *call, const char *did, HRESULT result, const layer_copy *copy, uint32_t target)
{
    layer_text text = {0};
    dmlsplit_verdict verdict;
    layer_add(&text, call->name);
    layer_add(&text, did);
    layer_add_hresult(&text, result);
    for (size_t i = 0; i < sizeof hresults / sizeof hresults[0]; i++) {
        if (hresults[i].code != (uint32_t)result)
            continue;
        layer_add(&text, " (");
        layer_add(&text, hresults[i].name);
        layer_add(&text, ")");
    }
    add_where(&text, call);
    if (strcmp(call->name, "CompileGraph") == 0 && (uint32_t)result == INVALID_ARGUMENT)
        add_reader(&text);
    if (copy != NULL && judged(copy, target, &verdict) && verdict.rule != NULL) {
        add_rule(&text, &verdict);
    } else if (copy != NULL && (uint32_t)result == INVALID_ARGUMENT && output.path != NULL) {
        layer_add(&text, ": `dmlsplit check ");
        layer_add(&text, output.path);
        layer_add(&text, "` and `dmlsplit ask` say more");
    } else if (copy != NULL && (uint32_t)result == INVALID_ARGUMENT) {
        layer_add(&text, ": `dmlsplit check -` and `dmlsplit ask -` say more of ");
        layer_add_operator(&text, &copy->desc);
    }
    if (copy != NULL && !copy->whole)
        layer_add(&text, "; it points to memory that cannot be read, or a count in it is too large to be meant");
    return text.bytes;
}

char *layer_warning(const layer_copy *copy, uint32_t target)
{
    layer_text text = {0};
    dmlsplit_verdict verdict;
    if (!judged(copy, target, &verdict) || !verdict.crashes)
        return NULL;
    layer_add(&text, "CreateOperator does not return from this release");
    add_rule(&text, &verdict);
    return text.bytes;
}
