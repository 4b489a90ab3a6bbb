#pragma once

// What a program has read, so that nothing it writes takes the place of it: a rename over an input destroys what the
// result was made from.

#include <string>
#include <vector>

#include "formats/status.h"

namespace cortiq::formats {

/// Notes an open file as an input, whatever its name is now. MappedFile::open() does so by itself.
void remember_input(int fd);
/// The same by name; one that does not exist is none.
void remember_input(const std::string& path);

/// The files that the model `path` may be read from, by their names: itself, the other parts of a name such as
/// NAME-00001-of-0000N.EXT, signatures, and the tokenizer.json in its folder. Only those that exist. For programs that
/// leave the reading to another.
std::vector<std::string> model_files(const std::string& path);

/// Refuses an output that is one of the inputs noted so far, by whatever name. An empty `output` is none.
Status check_output(const std::string& output);

/// From now on everything that writes files asks check_output() itself. For tools' main(), through prepare_to_write():
/// a process that lives on may well replace what it read once.
void protect_inputs();
/// check_output() after protect_inputs(), else nothing.
Status check_protected(const std::string& output);

} // namespace cortiq::formats
