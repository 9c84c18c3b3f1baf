// The frame of both programs: their options, and their end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace harness {

using Options = std::map<std::string, std::uint32_t*>;

// Reads NAME=NUMBER words into the numbers of these names; an error for any other word.
void readOptions(int count, char** words, const Options& options);

// Serves, and ends the process with the status; with 2 after a message on standard error.
[[noreturn]] void runProgram(const std::function<int()>& serve);

}  // namespace harness
