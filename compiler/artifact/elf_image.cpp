#include "compiler/artifact/elf_image.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <elf.h>
#include <map>
#include <set>

#include "compiler/artifact/unwind_tables.h"

namespace cortiq::compiler {
namespace {

using formats::ArtifactSection;

constexpr char kSoname[] = "artifact.cqa";
constexpr char kConstants[] = "constants"; // the name of every kernel's constants
constexpr uint64_t kKernelAlignment = 64;
constexpr uint64_t kMaxKernels = 1 << 20;
constexpr uint64_t kMaxNameBytes = 1024;
constexpr uint64_t kMaxCodeBytes = 1 << 30; // unwind tables reach 31 bits
constexpr uint32_t kDynamicEntries = 7;

// Section header indices, in file order.
enum Section : uint16_t {
  kNull,
  kHash,
  kDynsym,
  kDynstr,
  kEhFrameHdr,
  kEhFrame,
  kText,
  kDynamic,
  kManifest,
  kProgram,
  kTokenizer,
  kProvenance,
  kWeights,
  kShstrtab,
  kSectionCount
};
constexpr const char* kSectionNames[kSectionCount] = {"",
                                                      ".hash",
                                                      ".dynsym",
                                                      ".dynstr",
                                                      ".eh_frame_hdr",
                                                      ".eh_frame",
                                                      ".text",
                                                      ".dynamic",
                                                      ".cortiq.manifest",
                                                      ".cortiq.program",
                                                      ".cortiq.tokenizer",
                                                      ".cortiq.provenance",
                                                      ".cortiq.weights",
                                                      ".shstrtab"};

uint64_t roundUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}
uint64_t pageBytes(uint32_t machine) {
  return machine == kMachineX86_64 ? 0x1000 : 0x10000;
}
/// By size, then by content.
struct BytesLess {
  bool operator()(std::span<const uint8_t> a, std::span<const uint8_t> b) const {
    return a.size() != b.size() ? a.size() < b.size() : std::memcmp(a.data(), b.data(), a.size()) < 0;
  }
};

/// For each kernel the first one of the same bytes.
std::vector<size_t> firstOfSameBytes(std::span<const KernelCode> kernels) {
  std::map<std::span<const uint8_t>, size_t, BytesLess> seen;
  std::vector<size_t> out;
  for (size_t i = 0; i < kernels.size(); ++i)
    out.push_back(seen.try_emplace(kernels[i].code, i).first->second);
  return out;
}
/// Entries of .dynsym: the null one, the constants, the kernels.
uint64_t symbolCount(const CodeLayout& code) {
  return 1 + code.localSymbols + code.placement.kernels.size();
}
uint32_t bucketCount(uint64_t kernels) {
  return static_cast<uint32_t>(kernels / 2 + 1);
}
formats::ArtifactExtent extent(const ImageLayout& layout, ArtifactSection section) {
  return layout.sections[static_cast<uint32_t>(section)];
}

/// The System V hash of the ELF specification.
uint32_t elfHash(const std::string& name) {
  uint32_t hash = 0;
  for (unsigned char c : name) {
    hash = (hash << 4) + c;
    const uint32_t top = hash & 0xf0000000;
    hash ^= top >> 24;
    hash &= ~top;
  }
  return hash;
}

template <class T>
void put(std::vector<uint8_t>& image, uint64_t offset, const T& value) {
  assert(offset + sizeof(T) <= image.size());
  std::memcpy(image.data() + offset, &value, sizeof(T));
}

void putBytes(std::vector<uint8_t>& image, uint64_t offset, std::span<const uint8_t> bytes) {
  assert(offset + bytes.size() <= image.size());
  if (!bytes.empty())
    std::memcpy(image.data() + offset, bytes.data(), bytes.size());
}

std::string dynamicStrings(std::span<const KernelCode> kernels) {
  std::string out(1, '\0');
  out.append(kSoname, sizeof(kSoname));
  out.append(kConstants, sizeof(kConstants));
  for (const KernelCode& kernel : kernels)
    out.append(kernel.name).push_back('\0');
  return out;
}

void putSymbols(std::vector<uint8_t>& image, const CodeLayout& code, std::span<const KernelCode> kernels) {
  const uint32_t buckets = bucketCount(kernels.size());
  std::vector<uint32_t> hash(2 + buckets + symbolCount(code));
  hash[0] = buckets;
  hash[1] = static_cast<uint32_t>(symbolCount(code));
  uint32_t* bucket = hash.data() + 2;
  uint32_t* chain = bucket + buckets;
  auto putSymbol = [&](uint32_t index, uint64_t name, unsigned char info, uint64_t offset, uint64_t bytes) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(name);
    symbol.st_info = info;
    symbol.st_shndx = kText;
    symbol.st_value = offset;
    symbol.st_size = bytes;
    put(image, code.dynsym + index * sizeof(symbol), symbol);
  };
  uint32_t local = 1; // ELF wants local symbols first; the hash table leaves them out
  uint32_t global = 1 + code.localSymbols;
  uint64_t name = 1 + sizeof(kSoname) + sizeof(kConstants);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const KernelPlacement::Entry& place = code.placement.kernels[i];
    if (const uint64_t at = kernels[i].constantsOffset; at != 0 && code.original[i] == i)
      putSymbol(local++, 1 + sizeof(kSoname), ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), place.offset + at,
                place.bytes - at);
    // Tools show one name for a place: that of the kernel that took it first.
    const unsigned char binding = code.original[i] == i ? STB_GLOBAL : STB_WEAK;
    putSymbol(global, name, ELF64_ST_INFO(binding, STT_FUNC), place.offset, place.bytes);
    name += kernels[i].name.size() + 1;
    uint32_t& head = bucket[elfHash(kernels[i].name) % buckets];
    chain[global] = head;
    head = global++;
  }
  putBytes(image, code.hash, {reinterpret_cast<const uint8_t*>(hash.data()), hash.size() * 4});
  const std::string strings = dynamicStrings(kernels);
  putBytes(image, code.dynstr, {reinterpret_cast<const uint8_t*>(strings.data()), strings.size()});
}

void putDynamic(std::vector<uint8_t>& image, const CodeLayout& code) {
  const Elf64_Dyn entries[kDynamicEntries] = {
      {DT_SONAME, {1}},
      {DT_HASH, {code.hash}},
      {DT_STRTAB, {code.dynstr}},
      {DT_SYMTAB, {code.dynsym}},
      {DT_STRSZ, {code.ehFrameHdr - code.dynstr}},
      {DT_SYMENT, {sizeof(Elf64_Sym)}},
      {DT_NULL, {0}},
  };
  put(image, code.dynamic, entries);
}

void putProgramHeaders(std::vector<uint8_t>& image, const CodeLayout& code, uint32_t machine) {
  const uint64_t page = pageBytes(machine);
  auto segment = [](uint32_t type, uint32_t flags, uint64_t begin, uint64_t end, uint64_t align) {
    Elf64_Phdr header{};
    header.p_type = type;
    header.p_flags = flags;
    header.p_offset = header.p_vaddr = header.p_paddr = begin;
    header.p_filesz = header.p_memsz = end - begin;
    header.p_align = align;
    return header;
  };
  const Elf64_Phdr headers[] = {
      segment(PT_LOAD, PF_R, 0, code.readOnlyEnd, page),
      segment(PT_LOAD, PF_R | PF_X, code.text, code.textEnd, page),
      segment(PT_LOAD, PF_R | PF_W, code.dynamic, code.dynamicEnd, page),
      segment(PT_DYNAMIC, PF_R | PF_W, code.dynamic, code.dynamicEnd, 8),
      segment(PT_GNU_EH_FRAME, PF_R, code.ehFrameHdr, code.ehFrameHdr + ehFrameHdrBytes(code.places.size()), 4),
      // Without this one glibc would make the stack of a process that opens the file executable.
      segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16),
  };
  put(image, sizeof(Elf64_Ehdr), headers);
  auto* elf = reinterpret_cast<Elf64_Ehdr*>(image.data());
  elf->e_phoff = sizeof(Elf64_Ehdr);
  elf->e_phentsize = sizeof(Elf64_Phdr);
  elf->e_phnum = std::size(headers);
}

void putSectionHeaders(std::vector<uint8_t>& image, const ImageLayout& layout, uint64_t kernels) {
  const CodeLayout& code = layout.code;
  Elf64_Shdr headers[kSectionCount] = {};
  auto set = [&](Section index, uint32_t type, uint64_t flags, uint64_t begin, uint64_t bytes, uint64_t align,
                 uint32_t link = 0, uint32_t info = 0, uint64_t entry = 0) {
    Elf64_Shdr& header = headers[index];
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_addr = flags & SHF_ALLOC ? begin : 0;
    header.sh_offset = begin;
    header.sh_size = bytes;
    header.sh_addralign = align;
    header.sh_link = link;
    header.sh_info = info;
    header.sh_entsize = entry;
  };
  auto own = [&](Section index, ArtifactSection section, uint64_t align) {
    set(index, SHT_PROGBITS, 0, extent(layout, section).offset, extent(layout, section).bytes, align);
  };
  set(kHash, SHT_HASH, SHF_ALLOC, code.hash, 4 * (2 + bucketCount(kernels) + symbolCount(code)), 8, kDynsym, 0, 4);
  set(kDynsym, SHT_DYNSYM, SHF_ALLOC, code.dynsym, code.dynstr - code.dynsym, 8, kDynstr, 1 + code.localSymbols,
      sizeof(Elf64_Sym));
  set(kDynstr, SHT_STRTAB, SHF_ALLOC, code.dynstr, code.ehFrameHdr - code.dynstr, 1);
  set(kEhFrameHdr, SHT_PROGBITS, SHF_ALLOC, code.ehFrameHdr, ehFrameHdrBytes(code.places.size()), 4);
  set(kEhFrame, SHT_PROGBITS, SHF_ALLOC, code.ehFrame, ehFrameBytes(code.places.size()), 8);
  set(kText, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, code.text, code.textEnd - code.text, 64);
  set(kDynamic, SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, code.dynamic, code.dynamicEnd - code.dynamic, 8, kDynstr, 0,
      sizeof(Elf64_Dyn));
  own(kManifest, ArtifactSection::kManifest, 64);
  own(kProgram, ArtifactSection::kProgram, 64);
  own(kTokenizer, ArtifactSection::kTokenizer, 64);
  own(kProvenance, ArtifactSection::kProvenance, 64);
  own(kWeights, ArtifactSection::kWeights, formats::kArtifactPage);
  std::string names;
  for (int i = 0; i < kSectionCount; ++i) {
    headers[i].sh_name = static_cast<Elf64_Word>(names.size());
    names.append(kSectionNames[i]).push_back('\0');
  }
  set(kShstrtab, SHT_STRTAB, 0, layout.sectionNames, names.size(), 1);
  putBytes(image, layout.sectionNames, {reinterpret_cast<const uint8_t*>(names.data()), names.size()});
  put(image, layout.sectionHeaders, headers);
  auto* elf = reinterpret_cast<Elf64_Ehdr*>(image.data());
  elf->e_shoff = layout.sectionHeaders;
  elf->e_shentsize = sizeof(Elf64_Shdr);
  elf->e_shnum = kSectionCount;
  elf->e_shstrndx = kShstrtab;
}

Status checkKernels(std::span<const KernelCode> kernels, uint32_t machine) {
  if (machine != kMachineX86_64 && machine != kMachineAArch64)
    return internal_error("no artifact can be written for ELF machine " + std::to_string(machine));
  if (kernels.empty() || kernels.size() > kMaxKernels)
    return internal_error("an artifact has between 1 and 2^20 kernels, not " + std::to_string(kernels.size()));
  std::set<std::string_view> names;
  uint64_t total = 0;
  for (const KernelCode& kernel : kernels) {
    if (kernel.name.empty() || kernel.name.size() > kMaxNameBytes || kernel.name.find('\0') != std::string::npos)
      return internal_error("a kernel's name must have 1 to 1024 bytes and no zero byte");
    if (!names.insert(kernel.name).second)
      return internal_error("two kernels are named " + kernel.name);
    total += roundUp(kernel.code.size(), kKernelAlignment);
    if (kernel.code.empty() || total > kMaxCodeBytes)
      return internal_error("kernel " + kernel.name + " is empty or the code exceeds 1 GiB");
    if (kernel.constantsOffset >= kernel.code.size())
      return internal_error("the constants of kernel " + kernel.name + " begin behind its end");
  }
  return {};
}

} // namespace

StatusOr<CodeLayout> layoutCode(std::span<const KernelCode> kernels, uint32_t machine) {
  if (Status status = checkKernels(kernels, machine); !status.ok())
    return status;
  const uint64_t page = pageBytes(machine);
  CodeLayout out;
  out.original = firstOfSameBytes(kernels);
  uint64_t places = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    places += out.original[i] == i;
    out.localSymbols += out.original[i] == i && kernels[i].constantsOffset != 0;
  }
  out.hash = formats::kArtifactPage;
  const uint64_t symbols = 1 + out.localSymbols + kernels.size();
  out.dynsym = roundUp(out.hash + 4 * (2 + bucketCount(kernels.size()) + symbols), 8);
  out.dynstr = out.dynsym + symbols * sizeof(Elf64_Sym);
  // .dynstr is padded to its successor's alignment: its size is the distance between the two.
  out.ehFrameHdr = roundUp(out.dynstr + dynamicStrings(kernels).size(), 8);
  out.ehFrame = roundUp(out.ehFrameHdr + ehFrameHdrBytes(places), 8);
  out.readOnlyEnd = out.ehFrame + ehFrameBytes(places);
  out.text = roundUp(out.readOnlyEnd, page);
  out.textEnd = out.text;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (out.original[i] != i) {
      out.placement.kernels.push_back(out.placement.kernels[out.original[i]]);
      continue;
    }
    const KernelPlacement::Entry place{roundUp(out.textEnd, kKernelAlignment), kernels[i].code.size()};
    out.placement.kernels.push_back(place);
    out.places.push_back(place);
    out.textEnd = place.offset + place.bytes;
  }
  out.dynamic = roundUp(out.textEnd, page);
  out.dynamicEnd = out.dynamic + kDynamicEntries * sizeof(Elf64_Dyn);
  return out;
}

ImageLayout layoutImage(CodeLayout code, const SectionSizes& sizes) {
  ImageLayout out;
  uint64_t end = code.dynamicEnd;
  auto place = [&](ArtifactSection section, uint64_t bytes) {
    const uint64_t offset = roundUp(end, 64);
    out.sections[static_cast<uint32_t>(section)] = {offset, bytes};
    end = offset + bytes;
  };
  out.sections[static_cast<uint32_t>(ArtifactSection::kCode)] = {code.text, code.textEnd - code.text};
  place(ArtifactSection::kManifest, sizes.manifest);
  place(ArtifactSection::kProgram, sizes.program);
  place(ArtifactSection::kTokenizer, sizes.tokenizer);
  place(ArtifactSection::kProvenance, sizes.provenance);
  out.sectionNames = end;
  for (const char* name : kSectionNames)
    end += std::strlen(name) + 1;
  out.sectionHeaders = roundUp(end, 8);
  end = out.sectionHeaders + kSectionCount * sizeof(Elf64_Shdr);
  out.weights = roundUp(end, formats::kArtifactPage);
  out.sections[static_cast<uint32_t>(ArtifactSection::kWeights)] = {out.weights, sizes.weights};
  out.fileBytes = out.weights + sizes.weights;
  out.code = std::move(code);
  return out;
}

std::vector<uint8_t> buildImage(const ImageLayout& layout, std::span<const KernelCode> kernels, uint32_t machine) {
  const CodeLayout& code = layout.code;
  std::vector<uint8_t> image(layout.weights);
  Elf64_Ehdr elf{};
  std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
  elf.e_ident[EI_CLASS] = ELFCLASS64;
  elf.e_ident[EI_DATA] = ELFDATA2LSB;
  elf.e_ident[EI_VERSION] = EV_CURRENT;
  elf.e_type = ET_DYN;
  elf.e_machine = static_cast<Elf64_Half>(machine);
  elf.e_version = EV_CURRENT;
  elf.e_ehsize = sizeof(elf);
  put(image, 0, elf);
  putProgramHeaders(image, code, machine);
  putSymbols(image, code, kernels);
  putBytes(image, code.ehFrame, buildEhFrame(code.places, code.ehFrame, machine));
  putBytes(image, code.ehFrameHdr, buildEhFrameHdr(code.places, code.ehFrameHdr, code.ehFrame));
  if (machine == kMachineX86_64) // int3 between kernels, so that a stray jump stops at once
    std::memset(image.data() + code.text, 0xcc, code.textEnd - code.text);
  for (size_t i = 0; i < kernels.size(); ++i)
    putBytes(image, code.placement.kernels[i].offset, kernels[i].code);
  putDynamic(image, code);
  putSectionHeaders(image, layout, kernels.size());
  return image;
}

} // namespace cortiq::compiler
