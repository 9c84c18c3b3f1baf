/* judge.cpp - an implementation of Split and Join, judged by the files of `dmlsplit conformance export DIR`
 *
 *     judge DIR/verdicts.jsonl 1.15.4      judges the implementation in this program, as DirectML 1.15.4; so do the executions
 *     judge                                answers questions from standard input: dmlsplit conformance run ./judge
 *
 * The implementation is dmlsplit's library, in three calls: see `create` and `dispatch`. Put yours in their place: IDMLDevice::CreateOperator,
 * an emulator, a back end. Compile it with the .c files below csrc/ and with include/ as an include path.
 */
#include "dmlsplit_directml.h"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct Json {
    char kind = 'n';                            /* null, true, false, 0 for numbers, " { [ */
    std::string text;                           /* of a string or a number */
    std::vector<std::pair<std::string, Json>> members;
    std::vector<Json> items;

    const Json &operator[](const char *name) const
    {
        static const Json none;
        for (const auto &member : members)
            if (member.first == name)
                return member.second;
        return none;
    }
    uint64_t number() const { return kind == '0' ? std::strtoull(text.c_str(), nullptr, 10) : throw std::runtime_error("a number is expected"); }
};

/* Parses the value at `at` and advances `at` past it. The input has no escapes other than \" and \\. */
static Json parse(const char *&at)
{
    const auto blank = [&] { while (*at == ' ' || *at == ',' || *at == ':' || *at == '\n' || *at == '\r') at++; };
    Json value;
    blank();
    value.kind = *at;
    if (*at == '{' || *at == '[') {
        const bool object = *at++ == '{';
        for (blank(); *at != (object ? '}' : ']'); blank()) {
            if (*at == 0)
                throw std::runtime_error("the line ends early");
            std::string name = object ? parse(at).text : "";
            object ? (void)value.members.emplace_back(std::move(name), parse(at)) : value.items.push_back(parse(at));
        }
        at++;
    } else if (*at == '"') {
        for (at++; *at != '"' && *at != 0; at++)
            value.text += *at == '\\' && at[1] != 0 ? *++at : *at;
        at += *at == '"';
    } else if (*at == 't' || *at == 'f' || *at == 'n') {
        at += *at == 'f' ? 5 : 4;
    } else {
        value.kind = '0';
        while (*at != 0 && std::string("0123456789+-.eE").find(*at) != std::string::npos)
            value.text += *at++;
        if (value.text.empty())
            throw std::runtime_error("no value");
    }
    return value;
}

/* True if the values differ. Members that are missing or null in the answer are unknown and do not count. */
static bool differs(const Json &recorded, const Json &given)
{
    if (recorded.kind == 'n' || given.kind == 'n')
        return false;
    if (recorded.kind != given.kind || recorded.text != given.text || recorded.items.size() != given.items.size())
        return true;
    for (size_t i = 0; i < recorded.items.size(); i++)
        if (differs(recorded.items[i], given.items[i]))
            return true;
    for (const auto &member : recorded.members)
        if (differs(member.second, given[member.first.c_str()]))
            return true;
    return false;
}

/* DirectML's structs for an operator in JSON; they are valid for the lifetime of this object. */
class Operator {
public:
    explicit Operator(const Json &json) : desc_{}
    {
        const Json &members = json["Desc"];
        const bool split = json["Type"].text == "DML_OPERATOR_SPLIT";
        const DML_TENSOR_DESC *whole = tensor(members[split ? "InputTensor" : "OutputTensor"]);
        const Json &array = members[split ? "OutputTensors" : "InputTensors"];
        for (const Json &part : array.items) {
            if (part.kind == 'n')
                throw std::runtime_error("a null entry in an array of structs");
            parts_.push_back(*tensor(part));
        }
        const uint64_t count = members[split ? "OutputCount" : "InputCount"].number();
        if (count > parts_.size() && array.kind != 'n')
            throw std::runtime_error("a count beyond the array");
        const DML_TENSOR_DESC *parts = array.kind == 'n' ? nullptr : parts_.data();
        const UINT axis = (UINT)members["Axis"].number();
        split_ = {whole, (UINT)count, parts, axis};
        join_ = {(UINT)count, parts, whole, axis};
        desc_ = split ? DML_OPERATOR_DESC{DML_OPERATOR_SPLIT, &split_} : DML_OPERATOR_DESC{DML_OPERATOR_JOIN, &join_};
    }
    Operator(const Operator &) = delete;
    const DML_OPERATOR_DESC *desc() const { return &desc_; }

private:
    const UINT *numbers(const Json &array, size_t count)
    {
        if (array.kind == 'n')
            return nullptr;
        if (array.items.size() < count)
            throw std::runtime_error("DimensionCount beyond the array");
        std::vector<UINT> &made = numbers_.emplace_back();
        for (const Json &item : array.items)
            made.push_back((UINT)item.number());
        return made.data();
    }
    const DML_TENSOR_DESC *tensor(const Json &json)
    {
        static const char *const types[] = {"UNKNOWN", "FLOAT32", "FLOAT16", "UINT32", "UINT16", "UINT8", "INT32",
                                            "INT16", "INT8", "FLOAT64", "UINT64", "INT64", "UINT4", "INT4"};
        if (json.kind == 'n')
            return nullptr;
        const Json &members = json["Desc"];
        const UINT type = json["Type"].kind == '0' ? (UINT)json["Type"].number() : json["Type"].text == "BUFFER";
        DML_TENSOR_DESC &made = tensors_.emplace_back(DML_TENSOR_DESC{(DML_TENSOR_TYPE)type, nullptr});
        if (members.kind == 'n')
            return &made;
        const Json &name = members["DataType"], &flags = members["Flags"];
        UINT data_type = name.kind == '0' ? (UINT)name.number() : 0;
        for (UINT i = 0; i < sizeof types / sizeof *types; i++)
            data_type = name.text == types[i] ? i : data_type;
        const UINT count = (UINT)members["DimensionCount"].number();
        made.Desc = &buffers_.emplace_back(DML_BUFFER_TENSOR_DESC{
            (DML_TENSOR_DATA_TYPE)data_type,
            (DML_TENSOR_FLAGS)(flags.kind == '0' ? (UINT)flags.number() : flags.text == "OWNED_BY_DML"), count,
            numbers(members["Sizes"], count), numbers(members["Strides"], count), members["TotalTensorSizeInBytes"].number(),
            (UINT)members["GuaranteedBaseOffsetAlignment"].number()});
        return &made;
    }

    std::deque<DML_TENSOR_DESC> tensors_;
    std::deque<DML_BUFFER_TENSOR_DESC> buffers_;
    std::deque<std::vector<UINT>> numbers_;
    std::vector<DML_TENSOR_DESC> parts_;
    DML_SPLIT_OPERATOR_DESC split_;
    DML_JOIN_OPERATOR_DESC join_;
    DML_OPERATOR_DESC desc_;
};

/* CreateOperator's HRESULT: your implementation here. */
static uint32_t create(const DML_OPERATOR_DESC *desc, const std::string &version)
{
    dmlsplit_verdict verdict = {};
    verdict.struct_size = sizeof verdict;
    if (dmlsplit_validate(desc, dmlsplit_find_release(version.c_str()), &verdict) != DMLSPLIT_OK || verdict.crashes)
        throw std::runtime_error("no verdict");
    return verdict.hresult;
}

/* Runs an operator on memory of the tensors' sizes: your implementation here. */
static void dispatch(const DML_OPERATOR_DESC *desc, std::vector<void *> inputs, std::vector<void *> outputs)
{
    dmlsplit_plan *plan = nullptr;
    dmlsplit_fault fault;
    dmlsplit_status status = dmlsplit_plan_create_dml(desc, 0, &plan, &fault);
    if (status == DMLSPLIT_OK && desc->Type == DML_OPERATOR_SPLIT)
        status = dmlsplit_split(plan, inputs[0], outputs.data());
    else if (status == DMLSPLIT_OK)
        status = dmlsplit_join(plan, inputs.data(), outputs[0]);
    dmlsplit_plan_destroy(plan);
    if (status != DMLSPLIT_OK)
        throw std::runtime_error(dmlsplit_status_string(status));
}

static std::string execution(const Json &question, const DML_OPERATOR_DESC *desc)
{
    static const char digits[] = "0123456789abcdef";
    std::vector<std::string> buffers;
    for (const Json &hex : question["buffers"].items) {
        std::string &bytes = buffers.emplace_back();
        for (size_t i = 0; i + 1 < hex.text.size(); i += 2)
            bytes += (char)std::stoi(hex.text.substr(i, 2), nullptr, 16);
    }
    std::vector<void *> ends[2];
    for (int side = 0; side < 2; side++)
        for (const Json &bound : question[side ? "outputs" : "inputs"].items)
            ends[side].push_back(&buffers.at(bound["buffer"].number()).at(bound["offset"].number()));
    dispatch(desc, ends[0], ends[1]);
    std::string answer;
    for (const Json &bound : question["outputs"].items) {
        answer += answer.empty() ? "\"" : ", \"";
        for (const unsigned char byte : buffers[bound["buffer"].number()])
            (answer += digits[byte >> 4]) += digits[byte & 15];
        answer += '"';
    }
    return ", \"buffers\": [" + answer + "]";
}

/* The members of the answer to a question. */
static std::string answered(const Json &question, const std::string &version)
{
    try {
        const std::string &kind = question["kind"].text;
        if (kind != "operator" && kind != "execution")
            throw std::runtime_error("no answers of this kind");
        const Operator op(question["operator"]);
        const uint32_t code = create(op.desc(), version);
        char text[64];
        std::snprintf(text, sizeof text, "\"accepted\": %s, \"hresult\": \"0x%08x\"", code == 0 ? "true" : "false", code);
        return text + (kind == "execution" && code == 0 ? execution(question, op.desc()) : "");
    } catch (const std::exception &error) {
        return std::string("\"skip\": \"") + error.what() + "\"";
    }
}

int main(int count, char **words)
{
    if (count != 1 && count != 3)
        return std::fprintf(stderr, "judge [FILE VERSION]\n"), 2;
    int passed = 0, skipped = 0, failed = 0;
    std::ifstream file(count == 3 ? words[1] : "");
    for (std::string line; std::getline(count == 3 ? file : std::cin, line);) {
        const char *at = line.c_str();
        const Json json = parse(at);
        if (count == 1) {                       /* "directml 1.15.4" */
            const std::string target = json["target"].text, members = answered(json, target.substr(target.find(' ') + 1));
            std::cout << "{\"id\": \"" << json["id"].text << "\", " << members << "}" << std::endl;
            continue;
        }
        const std::string members = '{' + answered(json["question"], words[2]) + '}';
        at = members.c_str();
        const Json given = parse(at);
        bool asked = false, agrees = false;
        for (const Json &answer : json["answers"].items)
            for (const Json &version : answer["by"].items)
                if (version.text == words[2])
                    asked = true, agrees |= !differs(answer["is"], given);
        skipped += asked && given["skip"].kind != 'n';
        passed += asked && given["skip"].kind == 'n' && agrees;
        if (asked && given["skip"].kind == 'n' && !agrees)
            failed++, std::cout << json["id"].text << ": " << members << '\n';
    }
    if (count == 3)
        std::cout << passed << " passed, " << skipped << " skipped, " << failed << " failed\n";
    return failed != 0 || (count == 3 && passed == 0);
}
