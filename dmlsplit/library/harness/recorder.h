// An IDMLDevice1 that hands every call on to Microsoft's, and notes those that say what an application computes.
#pragma once

#include <string>

#include "library.h"

namespace harness {

// JSON text: a string, and an array or object of what is JSON already.
std::string jsonString(const std::string& text);

// What happened since it was made, as an array in JSON; each event is an object with "call".
class Events {
public:
    void add(const std::string& object) { text_ += (text_.empty() ? "" : ",") + object; }
    void clear() { text_.clear(); }
    std::string json() const { return "[" + text_ + "]"; }

private:
    std::string text_;
};

// A device that lives as long as the process; it writes to `events`.
DmlDevice1* recording(DmlDevice1& device, Events& events);

}  // namespace harness
