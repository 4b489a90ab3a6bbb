#include "runtime/loader/symbols.h"

#include <cstring>
#include <elf.h>

#include "formats/checked_math.h"

namespace cortiq::runtime {
namespace {

constexpr char kDamaged[] = "its ELF tables are damaged; compile the model again";

/// Copies the structure at `offset` out of the image; false when it is not inside.
template <class T>
bool read(std::span<const uint8_t> image, uint64_t offset, T& out) {
  if (!formats::range_fits(offset, sizeof(T), image.size()))
    return false;
  std::memcpy(&out, image.data() + offset, sizeof(T));
  return true;
}

bool inside(std::span<const uint8_t> image, const Elf64_Shdr& section) {
  return formats::range_fits(section.sh_offset, section.sh_size, image.size());
}

} // namespace

StatusOr<std::map<std::string_view, CodeSymbol>> read_code_symbols(std::span<const uint8_t> image) {
  Elf64_Ehdr elf;
  if (!read(image, 0, elf) || elf.e_shentsize != sizeof(Elf64_Shdr) || elf.e_shoff > image.size())
    return invalid(kDamaged);
  for (uint64_t i = 0; i < elf.e_shnum; ++i) {
    Elf64_Shdr table, strings;
    if (!read(image, elf.e_shoff + i * sizeof(table), table))
      return invalid(kDamaged);
    if (table.sh_type != SHT_DYNSYM)
      continue;
    if (!read(image, elf.e_shoff + table.sh_link * sizeof(strings), strings) || !inside(image, table) ||
        !inside(image, strings) || strings.sh_size == 0 || image[strings.sh_offset + strings.sh_size - 1] != 0)
      return invalid(kDamaged);
    std::map<std::string_view, CodeSymbol> out;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      if (!read(image, table.sh_offset + at, symbol) || symbol.st_name >= strings.sh_size)
        return invalid(kDamaged);
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
        out[reinterpret_cast<const char*>(image.data() + strings.sh_offset + symbol.st_name)] = {symbol.st_value,
                                                                                                 symbol.st_size};
    }
    return out;
  }
  return invalid(kDamaged);
}

} // namespace cortiq::runtime
