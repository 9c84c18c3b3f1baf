#include "program.h"

#include <cstdio>
#include <exception>
#include <iostream>
#include <stdexcept>

#include "platform.h"

namespace harness {

void readOptions(int count, char** words, const Options& options) {
    for (int i = 0; i < count; ++i) {
        const std::string word = words[i];
        const std::size_t equals = word.find('=');
        const auto found = options.find(word.substr(0, equals));
        if (equals == std::string::npos || found == options.end()) throw std::runtime_error("unknown option: " + word);
        *found->second = static_cast<std::uint32_t>(std::stoul(word.substr(equals + 1), nullptr, 0));
    }
}

void runProgram(const std::function<int()>& serve) {
    int status = 2;
    try {
        status = serve();
    } catch (const std::exception& error) {
        std::cerr << "harness: " << error.what() << std::endl;
    }
    std::cout.flush();
    endProcess(status);
}

std::string answerOf(HResult result) {
    char text[16];
    std::snprintf(text, sizeof text, "%08X", static_cast<unsigned>(result));
    return text;
}

}  // namespace harness
